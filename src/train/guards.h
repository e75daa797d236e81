// What tells that a run has gone wrong, from the numbers of its steps and evaluations;
// docs/running.md says it to users. A guard stops the run before anything more is saved, with exit
// code 4. Pure functions on the history that checkpoints keep; what they say holds on all ranks
// alike, whose losses and norms are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "formats/recipe/guard_keys.h"
#include "runtime/saving/trainer_state.h"
#include "train/progress.h"

namespace snug::train {

struct GuardRules {
  formats::GuardSet on{formats::Guard::not_finite};
  double max_loss_increase = 3;
  int64_t loss_increase_steps = 20;

  bool has(formats::Guard guard) const { return on.has(guard); }
};

// The exit code of a run that a guard stopped.
inline constexpr int kGuardExitCode = 4;

// A loss or norm of 0 in the first step stops a run; later ones only in so many steps in a row,
// since a batch of records that were learned by heart has such a loss.
inline constexpr int64_t kZeroSteps = 10;
// And so many generations of answers without one group that is not rewarded alike.
inline constexpr int64_t kEqualGenerations = 20;
// So many evaluations in a row that are worse than at the start; one, if it is the last.
inline constexpr int64_t kWorseEvaluations = 2;
// So many updates after the warm-up an adapter has to move.
inline constexpr int64_t kIdleUpdates = 3;

// Counts a step that was not skipped. Returns what is wrong, as a sentence without an end; nothing:
// the run goes on. Numbers that are not finite are the matter of bad_step_message (trainer.h).
std::optional<std::string> watch_step(const GuardRules& rules, const StepMetrics& metrics,
                                      runtime::RunHistory& history);

// The same for an evaluation; `step` 0 is the one before the first step.
std::optional<std::string> watch_evaluation(const GuardRules& rules, double loss, int64_t step,
                                            bool is_last, runtime::RunHistory& history);

// What is wrong with an adapter of which every B is 0 after this step.
std::string idle_adapter_text(int64_t step);

// Whether nothing is amiss of what later steps may still find to be a fault.
bool is_sound(const runtime::RunHistory& history);

// The error that stops a run: `what` is wrong, with where to go on from.
base::UserError stopped_by_guard(const std::string& what, const runtime::RunHistory& history);

}  // namespace snug::train
