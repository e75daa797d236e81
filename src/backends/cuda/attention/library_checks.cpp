#include "backends/cuda/attention/library_checks.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/cache_folder.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_parser.h"
#include "base/random.h"

namespace snug::backends::cuda {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kChecksFormat = "snug library checks 1";

std::string this_process() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return fmt::format("{} {}", host.data(), getpid());
}

// Whether a process of this machine, as this_process() writes it, has ended.
bool has_ended(const std::string& process) {
  const std::string here = this_process();
  const size_t space = process.rfind(' ');
  if (space == std::string::npos || process.substr(0, space) != here.substr(0, here.rfind(' ')))
    return false;
  const auto id = static_cast<pid_t>(std::strtol(process.c_str() + space, nullptr, 10));
  return id > 0 && kill(id, 0) != 0 && errno == ESRCH;
}

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

}  // namespace

LibraryChecks::LibraryChecks(std::string machine)
    : machine_(std::move(machine)),
      file_(base::cache_folder() /
            fmt::format("library-checks-{:08x}.json",
                        base::hash_name(machine_.data(), machine_.size()) >> 32)) {}

LibraryChecks::Answers LibraryChecks::read() const {
  Answers answers;
  const Json forms = forms_of(file_, machine_);
  for (const auto& [form, kept] : forms.items()) {
    try {
      const std::string begun = kept.value("begun_by", "");
      if (begun.empty())
        answers[form] = {kept.value("agrees", false), kept.value("difference", -1.0),
                         kept.value("why", "")};
      else if (has_ended(begun))
        answers[form] = {false, -1, "a process that checked it did not live on"};
    } catch (const nlohmann::json::exception&) {
      continue;  // no answer that this writes: it is asked anew
    }
  }
  return answers;
}

void LibraryChecks::keep(const std::string& form, const LibraryAnswer& answer, bool has_begun) {
  Json forms = forms_of(file_, machine_);
  if (has_begun)
    forms[form] = {{"begun_by", this_process()}};
  else if (answer.is_kept)
    forms[form] = {
        {"agrees", answer.agrees}, {"difference", answer.difference}, {"why", answer.why}};
  else
    forms.erase(form);
  try {
    fs::create_directories(file_.parent_path());
    base::write_file_atomically(
        file_,
        Json{{"format", kChecksFormat}, {"machine", machine_}, {"forms", std::move(forms)}}.dump(
            1) +
            "\n");
  } catch (const std::exception& error) {
    note(fmt::format("checks of the library are not kept: {}", error.what()));
  }
}

const LibraryAnswer& LibraryChecks::ask(const std::string& form,
                                        const std::function<LibraryAnswer()>& check) {
  if (const auto known = answers_.find(form); known != answers_.end()) return known->second;
  if (Answers kept = read(); kept.contains(form)) return answers_[form] = kept[form];
  keep(form, {}, true);
  const LibraryAnswer answer = check();
  keep(form, answer, false);
  return answers_[form] = answer;
}

void LibraryChecks::note(const std::string& line) { notes_.try_emplace(line, false); }

void LibraryChecks::say_notes() {
  for (auto& [line, is_said] : notes_)
    if (!std::exchange(is_said, true)) base::say("{}", line);
}

}  // namespace snug::backends::cuda
