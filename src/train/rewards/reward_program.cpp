#include "train/rewards/reward_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/console.h"
#include "base/error.h"
#include "base/json_parser.h"
#include "base/shown_text.h"
#include "text/unicode/utf8.h"
#include "train/rewards/command_words.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kKeptBytes = size_t{8} << 10;
constexpr int kShownLines = 10;
constexpr size_t kShownAnswer = 200;
constexpr std::string_view kExpectedLine =
    "expected one line for each answer: a number, null where nothing is said, or {\"reward\": "
    "number}; what is for people to read belongs on standard error";

bool may_run(const fs::path& file) {
  std::error_code error;
  return ::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, error);
}

// Throws std::invalid_argument.
void check_program(const std::string& program) {
  std::error_code error;
  if (program.find('/') != std::string::npos) {
    if (!fs::exists(program, error))
      throw std::invalid_argument(fmt::format("there is no file {}", program));
    if (!may_run(program))
      throw std::invalid_argument(fmt::format(
          "{0} may not be executed; chmod +x {0} allows it, or name what runs it: exec:python3 {0}",
          program));
    return;
  }
  const char* paths = std::getenv("PATH");
  std::string_view left = paths == nullptr ? std::string_view() : paths;
  while (!left.empty()) {
    const std::string_view folder = left.substr(0, left.find(':'));
    if (may_run(fs::path(folder) / program)) return;
    left.remove_prefix(std::min(left.size(), folder.size() + 1));
  }
  const bool is_here = fs::exists(program, error);
  throw std::invalid_argument(
      is_here
          ? fmt::format("no folder of PATH has {0}; exec:./{0} names the one that is here", program)
          : fmt::format("no folder of PATH has {}", program));
}

// The record with its fields in their order.
ordered_json fields_of(const RewardedRecord& record) {
  return base::parse_ordered_json(record.fields, [&](const std::string& problem, size_t) {
    throw base::UserError("broken JSON: " + problem, {record.file, record.line, 0});
  });
}

// A line for each answer.
std::string question_lines(std::span<const RewardedAnswer> answers) {
  std::string lines;
  const RewardedRecord* last = nullptr;  // answers to a prompt lie next to one another
  ordered_json fields;
  size_t index = 0;
  for (const RewardedAnswer& answer : answers) {
    if (answer.record != last) fields = fields_of(*answer.record);
    last = answer.record;
    const ordered_json line{{"prompt", text::repair_utf8(answer.prompt)},
                            {"completion", text::repair_utf8(answer.answer)},
                            {"record", fields},
                            {"index", index++},
                            {"of", answers.size()},
                            {"tokens", answer.tokens},
                            {"ended", answer.ended}};
    lines += line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    lines += '\n';
  }
  return lines;
}

// A line as a reward. Returns what is wrong with it; empty where nothing is.
std::string read_reward(const std::string& line, size_t index, double& reward) {
  std::string problem;
  json value;
  try {
    value = base::parse_json_value(
        line, [](const std::string& what, size_t) { throw std::invalid_argument(what); });
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  if (value.is_object()) {
    if (!value.contains("reward")) return "the object has no 'reward'";
    if (value.contains("index") && value.at("index") != index)
      return fmt::format("it has the index {} in place of {}", value.at("index").dump(), index);
    value = json(value.at("reward"));
  }
  reward = std::numeric_limits<double>::quiet_NaN();
  if (value.is_null()) return "";
  if (value.is_boolean()) {
    reward = value.get<bool>() ? 1 : 0;
    return "";
  }
  if (!value.is_number() || !std::isfinite(value.get<double>())) return "it is no number";
  reward = value.get<double>();
  return "";
}

}  // namespace

RewardProgram::RewardProgram(const std::string& command, ProgramLimits limits, fs::path log)
    : words_(command_words(command)), limits_(limits), log_(std::move(log)) {
  check_program(words_.front());
}

std::vector<double> RewardProgram::judge(std::span<const RewardedAnswer> answers) {
  std::vector<double> rewards;
  if (answers.empty()) return rewards;
  const std::string text = question_lines(answers);
  const std::string first = ask(text, rewards);
  if (first.empty()) return rewards;
  base::say("WARNING: the program of rewards {} failed, and is started again: {}{}", words_.front(),
            first, last_words());
  const std::string second = ask(text, rewards);
  if (second.empty()) return rewards;
  base::throw_user_error(
      "The program of rewards {} failed twice on the same {} answer{}, so that there is no reward "
      "to learn from. First: {}. Then: {}{}",
      words_.front(), answers.size(), answers.size() == 1 ? "" : "s", first, second, last_words());
}

// Returns what went wrong; the program is gone then. Empty where nothing did.
std::string RewardProgram::ask(std::string_view text, std::vector<double>& rewards) {
  const auto count = static_cast<size_t>(std::ranges::count(text, '\n'));
  if (program_ == nullptr) {
    said_.clear();
    program_ = std::make_unique<runtime::ChildProgram>(
        words_, limits_.memory, [this](std::string_view said) { hear(said); });
  }
  rewards.assign(count, 0);
  const auto take = [&](size_t index, const std::string& line) -> std::string {
    const std::string wrong = read_reward(line, index, rewards[index]);
    if (wrong.empty()) return "";
    return fmt::format("its line {} of {} is '{}' ({}); {}", index + 1, count,
                       base::shown_text(line.substr(0, kShownAnswer)), wrong, kExpectedLine);
  };
  std::string problem = program_->ask({.text = text, .lines = count, .take = take},
                                      std::chrono::duration<double>(limits_.timeout_seconds));
  if (problem.empty()) return "";
  program_->kill();
  program_.reset();
  return problem;
}

void RewardProgram::hear(std::string_view text) {
  said_ += text;
  if (said_.size() > kKeptBytes) said_.erase(0, said_.size() - kKeptBytes);
  if (log_.empty()) return;
  // A log that cannot be written stops nothing.
  std::ofstream(log_, std::ios::binary | std::ios::app) << text;
}

std::string RewardProgram::last_words() const {
  size_t end = said_.size();
  while (end > 0 && (said_[end - 1] == '\n' || said_[end - 1] == '\r')) --end;
  size_t begin = end;
  for (int lines = 0; begin > 0; --begin)
    if (said_[begin - 1] == '\n' && ++lines == kShownLines) break;
  if (begin == end) return "; it said nothing on standard error";
  return "; it said:\n" + base::shown_text(std::string_view(said_).substr(begin, end - begin));
}

}  // namespace snug::train
