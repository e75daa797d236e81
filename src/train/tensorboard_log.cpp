#include "train/tensorboard_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "report/event_record.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;

// TensorBoard reads the files of a folder in the order of their names.
constexpr std::string_view kEventFile = "events.out.tfevents.";

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The second in a name, of ten digits; 0 where there is none.
int64_t second_of(std::string_view name) {
  int64_t second = 0;
  if (name.starts_with(kEventFile))
    std::from_chars(name.data() + kEventFile.size(), name.data() + name.size(), second);
  return second;
}

fs::path next_event_file(const fs::path& folder) {
  auto second = static_cast<int64_t>(unix_seconds());
  for (const auto& entry : base::list_folder(folder))
    second = std::max(second, second_of(entry.path().filename().string()) + 1);
  return folder / fmt::format("{}{:010}.snug", kEventFile, second);
}

// Markdown shows lines that are indented as they stand.
std::string as_code(std::string_view text) {
  std::string code;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    code += fmt::format("    {}\n", text.substr(start, end - start));
    start = end + 1;
  }
  return code;
}

}  // namespace

std::string tensorboard_tag(std::string_view key) {
  constexpr std::string_view kEvaluation = "eval_";
  return key.starts_with(kEvaluation) ? fmt::format("eval/{}", key.substr(kEvaluation.size()))
                                      : fmt::format("train/{}", key);
}

bool TensorBoardLog::is_event_file(std::string_view name) {
  return name.starts_with(kEventFile) && name.ends_with(".snug");
}

TensorBoardLog::TensorBoardLog(const fs::path& folder, std::string_view recipe,
                               std::optional<int64_t> first_step)
    : file_(base::File::create(next_event_file(folder))) {
  append(report::version_record(unix_seconds()));
  if (first_step) append(report::restart_record(unix_seconds(), *first_step));
  append(report::text_record(unix_seconds(), first_step ? *first_step - 1 : 0, "recipe",
                             as_code(recipe)));
}

void TensorBoardLog::append(std::string_view record) {
  file_.write_at(end_, record.data(), std::ssize(record));
  end_ += std::ssize(record);
}

void TensorBoardLog::add(std::string_view line) {
  try_to([&] {
    const nlohmann::json object = base::parse_json(line, "a line of metrics");
    std::vector<report::EventScalar> scalars;
    for (const auto& [key, value] : object.items())
      if (key != "step" && value.is_number())
        scalars.push_back({tensorboard_tag(key), static_cast<float>(value.get<double>())});
    append(report::scalars_record(unix_seconds(), object.value("step", int64_t{0}), scalars));
  });
}

void TensorBoardLog::add_text(int64_t step, std::string_view tag, std::string_view text) {
  try_to([&] { append(report::text_record(unix_seconds(), step, tag, as_code(text))); });
}

void TensorBoardLog::try_to(const std::function<void()>& add) {
  if (has_failed_) return;
  try {
    add();
  } catch (const base::UserError& error) {
    has_failed_ = true;
    base::say("TensorBoard learns no more of this run, which goes on: {}", error.what());
  }
}

}  // namespace snug::train
