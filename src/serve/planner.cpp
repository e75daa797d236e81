#include "serve/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/cuda/device/hardware_table.h"
#include "base/file.h"
#include "base/json_parser.h"
#include "base/words.h"
#include "formats/recipe/choices.h"
#include "models/config/config.h"
#include "plan/document/document.h"
#include "runtime/process/child_program.h"
#include "serve/api_error.h"

namespace snug::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::chrono::seconds kPlanTime{60};
constexpr size_t kMostComplaint = 16 << 10;
constexpr std::string_view kComplaint = "snug: error: ";

// The file that a plan's picture is written to, in a folder of its own, which goes away with this.
class PictureFile {
 public:
  PictureFile() {
    std::string name = (fs::temp_directory_path() / "snug-plan-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw ApiError(kInternal, "there is no room for a picture of a plan");
    folder_ = name;
  }
  ~PictureFile() {
    std::error_code error;
    fs::remove_all(folder_, error);
  }
  PictureFile(const PictureFile&) = delete;
  PictureFile& operator=(const PictureFile&) = delete;

  fs::path path() const { return folder_ / "plan.html"; }
  ordered_json text() const {
    std::error_code error;
    if (!fs::is_regular_file(path(), error)) return nullptr;
    return base::read_text_file(path());
  }

 private:
  fs::path folder_;
};

// What a plan's process wrote.
struct PlanOutput {
  std::string json{};       // to standard output
  std::string complaint{};  // to standard error
  std::string end{};        // how it ended
};

// The plan waits for a line, so that it has its limit before it begins, and is heard from then on.
PlanOutput run_plan(const std::vector<std::string>& plan) {
  std::vector<std::string> words = {"/bin/sh", "-c", "read -r line; exec \"$0\" \"$@\""};
  words.insert(words.end(), plan.begin(), plan.end());
  PlanOutput output;
  runtime::ChildProgram program(words, kPlannerBytes, [&](std::string_view text) {
    output.complaint +=
        text.substr(0, kMostComplaint - std::min(kMostComplaint, output.complaint.size()));
  });
  output.end = program.ask({.text = "\n",
                            .lines = std::numeric_limits<size_t>::max(),
                            .take =
                                [&](size_t /*index*/, const std::string& line) {
                                  output.json += line + "\n";
                                  return std::string();
                                }},
                           kPlanTime);
  program.kill();
  return output;
}

// What the plan says against the job; empty: nothing.
std::string complaint_of(const std::string& errors) {
  const size_t at = errors.rfind(kComplaint);
  if (at == std::string::npos) return "";
  const std::string rest = errors.substr(at + kComplaint.size());
  return rest.substr(0, rest.find('\n'));
}

ordered_json chosen_word(RequestFields& fields, const char* name, const ordered_json& choices) {
  const auto given = fields.text(name);
  if (!given) fields.refuse(name, "is missing");
  if (std::ranges::count(choices, ordered_json(*given)) == 0)
    fields.refuse(name, fmt::format("is {}, which is none of those at GET /snug/planner", *given));
  return *given;
}

}  // namespace

Planner::Planner(std::string program, int64_t room) : program_(std::move(program)), room_(room) {}

void Planner::check() const {
  if (program_.empty()) throw ApiError(kNotFound, "nothing is planned here");
  if (room_ >= 0 && room_ < kPlannerBytes)
    throw ApiError(
        kNotFound,
        fmt::format("nothing is planned here: a plan may take {}, and host_memory leaves "
                    "{}; use snug plan",
                    plan::readable_bytes(kPlannerBytes), plan::readable_bytes(room_)));
}

ordered_json Planner::choices() const {
  check();
  ordered_json methods = ordered_json::array();
  for (const auto& word : words_of(formats::Method{})) methods.push_back(std::string(word.text));
  ordered_json devices = ordered_json::array();
  for (const backends::cuda::HardwareRow& row : backends::cuda::hardware_table())
    devices.push_back(row.name);
  return {{"models", models::preset_names()}, {"methods", methods}, {"devices", devices}};
}

ordered_json Planner::plan(RequestFields& fields) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const ordered_json known = choices();
  constexpr size_t kMostWords = 9;
  std::vector<std::string> words = {program_, "plan", "--json"};
  words.reserve(kMostWords);
  for (const auto& [name, list] : {std::pair("model", "models"), std::pair("method", "methods"),
                                   std::pair("device", "devices")})
    words.push_back(
        fmt::format("{}={}", name, chosen_word(fields, name, known[list]).get<std::string>()));
  for (const char* name : {"max_length", "per_device_train_batch_size"})
    if (const auto number = fields.integer(name, 1, kMost))
      words.push_back(fmt::format("{}={}", name, *number));
  fields.refuse_others();
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) throw ApiError(kTooMany, "another plan is being made; try again later");
  const PictureFile picture;
  words.push_back(fmt::format("picture={}", picture.path().string()));
  const PlanOutput output = run_plan(words);
  ordered_json document = base::parse_ordered_json(output.json, [&](const std::string&, size_t) {
    throw ApiError(kInternal, fmt::format("the plan failed: {}. {}", output.end, output.complaint));
  });
  std::string message = complaint_of(output.complaint);
  if (document.contains("error")) {
    message = document["error"].value("message", message);
    document = nullptr;
  }
  const bool fits = document.is_object() && document.value("fits", false);
  return {{"fits", fits},
          {"message", message},
          {"plan", std::move(document)},
          {"picture", picture.text()}};
}

}  // namespace snug::serve
