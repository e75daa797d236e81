#include "cli/explain_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace snug::cli {
namespace {

using program::ProgramName;

template <typename Enum>
[[noreturn]] void refuse_word(std::string_view key, const std::string& word) {
  base::throw_user_error("'{}' is '{}'; it is one of {}", key, word,
                         fmt::join(base::all_words<Enum>(), ", "));
}

JobKind job_named(const std::string& word) {
  if (const auto job = base::from_word<JobKind>(word)) return *job;
  refuse_word<JobKind>("job", word);
}

program::ProgramKey program_named(const std::string& word) {
  if (const auto key = program::program_key(word)) return *key;
  refuse_word<ProgramName>("program", word);
}

bool is_of_inference_alone(ProgramName name) {
  return name == ProgramName::prefill || name == ProgramName::decode;
}

}  // namespace

ExplainOptions take_explain_options(Request& request) {
  std::optional<JobKind> job;
  ExplainOptions options;
  request.take_words([&](const std::string& key, const std::string& value) {
    if (key == "job")
      job = job_named(value);
    else if (key == "program")
      options.program = program_named(value);
    else if (key == "after")
      options.after = value;
    else
      return false;
    return true;
  });
  if (!options.after.empty() && !options.program)
    base::throw_user_error(
        "'after' is '{}', a pass that programs go through one by one; say which of them, as in "
        "program=micro_first",
        options.after);
  const bool is_inference = options.program && is_of_inference_alone(options.program->name);
  options.job = job.value_or(is_inference ? JobKind::inference : JobKind::training);
  return options;
}

std::string explain_help() {
  return fmt::format(
      "explain:\n"
      "  job={}\n"
      "      which job's programs (default {}; {} with program=prefill or decode). Of inference,\n"
      "      max_length is the tokens that a sequence may reach, per_device_train_batch_size the\n"
      "      sequences side by side, max_target_length the tokens of an encoder-decoder's answer\n"
      "  program={}\n"
      "      print this program alone; decode.8 is that of inference for at most 8 sequences,\n"
      "      prefill.128 that for at most 128 tokens\n"
      "  after=PASS\n"
      "      print it as this pass left it (default: as it runs). The table that is printed "
      "without\n"
      "      program= names the passes\n\n",
      fmt::join(base::all_words<JobKind>(), "|"), base::word_of(JobKind::training),
      base::word_of(JobKind::inference), fmt::join(base::all_words<ProgramName>(), "|"));
}

}  // namespace snug::cli
