// The options that `snug explain` takes in addition to the keys of a plan: the job, one of its
// programs, and the pass after which to show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/words.h"
#include "cli/request.h"
#include "program/ir/program_name.h"

namespace snug::cli {

enum class JobKind : uint8_t { training, inference };
constexpr auto words_of(JobKind /*type*/) {
  return base::words<JobKind>({{JobKind::training, "training"}, {JobKind::inference, "inference"}});
}

struct ExplainOptions {
  JobKind job = JobKind::training;
  std::optional<program::ProgramKey> program;  // nothing: all of the job
  std::string after;                           // a pass of that program; empty: all of them
};

// Removes the words that set these options from the request; the recipe's words stay. `prefill` and
// `decode` are programs of inference, so that job= may be left out with them. Throws UserError.
ExplainOptions take_explain_options(Request& request);

// The text of `snug explain --help`.
std::string explain_help();

}  // namespace snug::cli
