// Keys of the learning rate, with transformers' names, and the rules between them.
#include "formats/recipe/recipe_table.h"

namespace snug::formats {
namespace {

constexpr std::string_view kOtherScheduleAdvice =
    "this schedule is not built; cosine, cosine_with_restarts, cosine_with_min_lr, "
    "cosine_warmup_with_min_lr, linear, polynomial, inverse_sqrt, constant, constant_with_warmup "
    "and warmup_stable_decay are";
constexpr double kMaxCycles = 1000;
constexpr double kMaxPower = 1000;

void add_options(KeyTable& table) {
  table
      .add<&Recipe::min_lr>(
          "min_lr", "0",
          "cosine_with_min_lr and cosine_warmup_with_min_lr: the learning rate at "
          "the end; 0: min_lr_rate decides")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::min_lr_rate>("min_lr_rate", "0",
                                 "the same as min_lr, as a share of learning_rate")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::num_cycles>("num_cycles", "0.5",
                                "of a cosine: its waves, where 0.5 is down once; of "
                                "cosine_with_restarts, how often it falls (1 unless given)")
      .range({.least = 0, .most = kMaxCycles});
  table
      .add<&Recipe::num_stable_steps>(
          "num_stable_steps", "-1",
          "warmup_stable_decay: steps at the peak; -1: all that neither rise nor fall")
      .range({.least = -1, .most = kMaxCount});
  table
      .add<&Recipe::num_decay_steps>("num_decay_steps", "0",
                                     "warmup_stable_decay, which needs it: steps in which the "
                                     "learning rate falls")
      .range({.least = 0, .most = kMaxCount});
  table.add<&Recipe::warmup_type>("warmup_type", Ramp::linear,
                                  "warmup_stable_decay: how the learning rate rises");
  table.add<&Recipe::decay_type>("decay_type", Ramp::cosine,
                                 "warmup_stable_decay: how the learning rate falls");
  table
      .add<&Recipe::min_lr_ratio>("min_lr_ratio", "0",
                                  "warmup_stable_decay: share of learning_rate that it begins with "
                                  "and falls to")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::warmup_lr_rate>("warmup_lr_rate", "-1",
                                    "cosine_warmup_with_min_lr: share of learning_rate that the "
                                    "warm-up begins with; -1: one over its steps")
      .range({.least = -1, .most = kMaxFloat});
  table.add<&Recipe::lr_end>("lr_end", "1e-07", "polynomial: the learning rate at the end")
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::power>("power", "1",
                           "polynomial: power of the share of the steps that is left; 1: a line")
      .range({.least = 0, .most = kMaxPower});
  table
      .add<&Recipe::timescale>("timescale", "0",
                               "inverse_sqrt: steps after which the learning rate begins to fall, "
                               "to half at four times as many; 0: those of the warm-up, or 10000 "
                               "where there is none")
      .range({.least = 0, .most = kMaxCount});
}

}  // namespace

void add_schedule_keys(KeyTable& table) {
  table.group("Learning rate", kTraining, OnResume::free);
  table.add<&Recipe::learning_rate>("learning_rate", "", "the peak, reached after the warm-up")
      .computed(
          "2e-4 for lora and qlora, 3e-3 for adapter and adapter_v2, 1e-5 for full; 5e-6, 7.5e-5 "
          "and 1e-6 with "
          "objective=dpo, orpo, kto or simpo")
      .aliases({"lr"})
      .range({.least = 0, .most = kMaxFloat});
  table
      .add<&Recipe::lr_scheduler_type>(
          "lr_scheduler_type", Schedule::cosine,
          "how the learning rate goes on after the warm-up, as transformers computes it; constant "
          "has no warm-up")
      .aliases({"lr_scheduler"})
      .not_built(
          {"reduce_lr_on_plateau", "greedy", "one_cycle", "rex", "wsd", "step", "exponential"},
          kOtherScheduleAdvice);
  table
      .add<&Recipe::warmup_ratio>(
          "warmup_ratio", "0.03",
          "share of the steps in which the learning rate rises, when warmup_steps is 0; 0 where "
          "warmup_steps is given alone")
      .range(kFraction);
  table
      .add<&Recipe::warmup_steps>("warmup_steps", "0",
                                  "steps in which the learning rate rises, or below 1 their share "
                                  "of all steps; 0: warmup_ratio decides")
      .range(kStepsOrShare);
  add_options(table);
}

}  // namespace snug::formats
