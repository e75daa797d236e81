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
Enum named(std::string_view key, const std::string& word) {
  if (const auto value = base::from_word<Enum>(word)) return *value;
  base::throw_user_error("'{}' is '{}'; it is one of {}", key, word,
                         fmt::join(base::all_words<Enum>(), ", "));
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
      job = named<JobKind>(key, value);
    else if (key == "program")
      options.program = named<ProgramName>(key, value);
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
  const bool is_inference = options.program && is_of_inference_alone(*options.program);
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
      "      print this program alone\n"
      "  after=PASS\n"
      "      print it as this pass left it (default: as it runs). The table that is printed "
      "without\n"
      "      program= names the passes\n\n",
      fmt::join(base::all_words<JobKind>(), "|"), base::word_of(JobKind::training),
      base::word_of(JobKind::inference), fmt::join(base::all_words<ProgramName>(), "|"));
}

}  // namespace snug::cli
