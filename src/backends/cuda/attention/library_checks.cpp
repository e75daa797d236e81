#include "backends/cuda/attention/library_checks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/cache_folder.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/held_folder.h"
#include "base/json_parser.h"
#include "base/random.h"

namespace snug::backends::cuda {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kMaxBegun = 2;
constexpr const char* kChecksFormat = "snug library checks 2";

// The forms of a file of this machine; an empty object where there is none, or one that cannot be
// read: then all is asked anew.
Json forms_of(const fs::path& file, const std::string& machine) {
  try {
    if (!fs::exists(file)) return Json::object();
    const Json read = base::parse_ordered_json(
        base::read_text_file(file), [&](const std::string& problem, size_t) {
          base::throw_user_error("{}: {}", file.string(), problem);
        });
    const bool is_ours = read.is_object() && read.value("format", "") == kChecksFormat &&
                         read.value("machine", "") == machine && read.contains("forms") &&
                         read["forms"].is_object();
    return is_ours ? read["forms"] : Json::object();
  } catch (const std::exception&) {
    return Json::object();
  }
}

// The answer that the forms have; what is none, or was not written by this class, is checked again.
std::optional<LibraryAnswer> kept_answer(const Json& forms, const std::string& form) {
  try {
    const Json kept = forms.value(form, Json::object());
    if (!kept.contains("agrees")) return std::nullopt;
    return LibraryAnswer{kept.at("agrees").get<bool>(), kept.at("difference").get<double>(),
                         kept.at("why").get<std::string>()};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

int64_t begun_checks(const Json& forms, const std::string& form) {
  try {
    return forms.value(form, Json::object()).value("begun", int64_t{0});
  } catch (const nlohmann::json::exception&) {
    return 0;
  }
}

}  // namespace

LibraryChecks::LibraryChecks(std::string machine)
    : machine_(std::move(machine)),
      file_(base::cache_folder() / "library-checks" /
            fmt::format("{:08x}.json", base::hash_name(machine_.data(), machine_.size()) >> 32)) {}

LibraryAnswer LibraryChecks::kept_or_checked(const std::string& form,
                                             const std::function<LibraryAnswer()>& check) {
  // The file is replaced as a whole, so that whoever needs an answer it has waits for nobody.
  if (const auto kept = kept_answer(forms_of(file_, machine_), form); kept) return *kept;
  std::error_code ignored;  // a folder that cannot be made is told of when the answer is written
  fs::create_directories(file_.parent_path(), ignored);
  const base::HeldFolder held(file_.parent_path(),
                              "another process checks the library's attention");
  Json forms = forms_of(file_, machine_);
  const auto write = [&] {
    try {
      base::write_file_atomically(
          file_,
          Json{{"format", kChecksFormat}, {"machine", machine_}, {"forms", forms}}.dump(1) + "\n");
    } catch (const std::exception& error) {
      note(fmt::format("checks of the library are not kept: {}", error.what()));
    }
  };
  if (const auto kept = kept_answer(forms, form)) return *kept;
  const int64_t begun = begun_checks(forms, form);
  if (begun >= kMaxBegun)
    return {false, -1,
            fmt::format("the last {} checks of it did not end; without {} it is checked again",
                        begun, file_.string())};
  forms[form] = {{"begun", begun + 1}};
  write();
  LibraryAnswer answer = check();
  if (answer.is_kept)
    forms[form] = {
        {"agrees", answer.agrees}, {"difference", answer.difference}, {"why", answer.why}};
  else
    forms.erase(form);
  write();
  return answer;
}

const LibraryAnswer& LibraryChecks::ask(const std::string& form,
                                        const std::function<LibraryAnswer()>& check) {
  if (const auto known = answers_.find(form); known != answers_.end()) return known->second;
  return answers_[form] = kept_or_checked(form, check);
}

void LibraryChecks::note(const std::string& line) { notes_.try_emplace(line, false); }

void LibraryChecks::say_notes() {
  for (auto& [line, is_said] : notes_)
    if (!std::exchange(is_said, true)) base::say("{}", line);
}

}  // namespace snug::backends::cuda
