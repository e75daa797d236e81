// What tells that a run has gone wrong, from the numbers of its steps and evaluations;
// docs/running.md says it to users. A guard stops the run before anything more is saved, with exit
// code 4. Pure functions on the history that checkpoints keep; what they say holds on all ranks
// alike, whose losses and norms are the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/recipe/guard_keys.h"
#include "runtime/saving/trainer_state.h"
#include "train/progress.h"

namespace snug::train {

struct GuardRules {
  formats::GuardSet on{formats::Guard::not_finite};
  double max_loss_increase = 3;
  int64_t loss_increase_steps = 20;
  double min_entropy = 0;  // in nats
  double max_kl = 0;       // in nats a token; 0: any

  bool has(formats::Guard guard) const { return on.has(guard); }
};

// Those of a run: what the recipe asks for and the objective has.
GuardRules guard_rules_of(const formats::Recipe& recipe);

// The exit code of a run that a guard stopped.
inline constexpr int kGuardExitCode = 4;

// A loss or norm of 0 in the first step stops a run; later ones only in so many steps in a row,
// since a batch of records that were learned by heart has such a loss.
inline constexpr int64_t kZeroSteps = 10;
// What is wrong with answers that a run learns from shows in each generation, and whether it stays
// wrong only in many: so many in a row stop a run, and so many are told.
inline constexpr int64_t kAnswersInARow = 20;
inline constexpr int64_t kToldInARow = 5;
// So many evaluations in a row that are worse than at the start; one, if it is the last.
inline constexpr int64_t kWorseEvaluations = 2;
// So many updates after the warm-up an adapter has to move.
inline constexpr int64_t kIdleUpdates = 3;

// Counts a step that was not skipped. Returns what is wrong, as a sentence without an end; nothing:
// the run goes on. Numbers that are not finite are the matter of bad_step_message (trainer.h).
std::optional<std::string> watch_step(const GuardRules& rules, const StepMetrics& metrics,
                                      runtime::RunHistory& history);

// What is said of a step that watch_step counted and did not find wrong: faults that would stop the
// run if they went on.
std::vector<std::string> warnings_of(const GuardRules& rules, const StepMetrics& metrics,
                                     const runtime::RunHistory& history);

// What an evaluation is judged by.
struct EvaluationValue {
  std::string_view name;
  double value = 0;
  bool is_greatest = false;  // the greatest is the best, not the least
  double by_chance = 0;      // a difference of so much may be one of draws
};

// The same as watch_step for an evaluation; `step` 0 is the one before the first step.
std::optional<std::string> watch_evaluation(const GuardRules& rules,
                                            const EvaluationValue& evaluation, int64_t step,
                                            bool is_last, runtime::RunHistory& history);

// What is wrong with an adapter of which every B is 0 after this step.
std::string idle_adapter_text(int64_t step);

// Whether nothing is amiss of what later steps may still find to be a fault.
bool is_sound(const runtime::RunHistory& history);

// The error that stops a run: `what` is wrong, with where to go on from.
base::UserError stopped_by_guard(const std::string& what, const runtime::RunHistory& history);

}  // namespace snug::train
