#include "train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace snug::train {
namespace {

using formats::Ramp;
using formats::Schedule;

double share(int64_t steps, int64_t all) {
  return static_cast<double>(steps) / static_cast<double>(std::max<int64_t>(1, all));
}

// From 1 at progress 0 down, in waves; half a cycle goes down to 0 once.
double wave(double progress, double cycles) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * cycles * 2.0 * progress));
}

// From `least` at factor 0 to 1 at factor 1.
double above(double least, double factor) { return std::max(0.0, factor * (1.0 - least) + least); }

double rising(Ramp ramp, double progress) {
  switch (ramp) {
    case Ramp::linear:
      return progress;
    case Ramp::cosine:
      return 0.5 * (1.0 - std::cos(std::numbers::pi * progress));
    case Ramp::one_minus_root:
      return 1.0 - std::sqrt(1.0 - progress);
  }
  return 0;
}

double falling(Ramp ramp, double progress, double cycles) {
  switch (ramp) {
    case Ramp::linear:
      return 1.0 - progress;
    case Ramp::cosine:
      return wave(progress, cycles);
    case Ramp::one_minus_root:
      return 1.0 - std::sqrt(progress);
  }
  return 0;
}

int64_t warmup_steps(const formats::Recipe& recipe, int64_t total_steps) {
  if (recipe.warmup_steps > 0) return formats::steps_in(recipe.warmup_steps, total_steps);
  return static_cast<int64_t>(std::ceil(recipe.warmup_ratio * static_cast<double>(total_steps)));
}

}  // namespace

double LrSchedule::at(int64_t step) const { return learning_rate * factor(step - 1); }

double LrSchedule::factor(int64_t done) const {
  if (kind == Schedule::constant) return 1.0;
  if (kind == Schedule::warmup_stable_decay) return stable_factor(done);
  if (kind == Schedule::cosine_warmup_with_min_lr) return never_zero_factor(done);
  if (done < warmup_steps) return share(done, warmup_steps);
  if (kind == Schedule::constant_with_warmup) return 1.0;
  if (kind == Schedule::inverse_sqrt) return root_factor(done);
  return falling_factor(done);
}

double LrSchedule::falling_factor(int64_t done) const {
  const double progress = share(done - warmup_steps, total_steps - warmup_steps);
  switch (kind) {
    case Schedule::linear:
      return std::max(0.0, share(total_steps - done, total_steps - warmup_steps));
    case Schedule::polynomial:
      return options.end_rate +
             (1.0 - options.end_rate) * std::pow(std::max(0.0, 1.0 - progress), options.power);
    case Schedule::cosine_with_restarts:
      return progress >= 1.0 ? 0.0 : wave(std::fmod(options.num_cycles * progress, 1.0), 0.5);
    case Schedule::cosine_with_min_lr:
      return above(options.min_rate, wave(progress, options.num_cycles));
    default:
      return above(0.0, wave(progress, options.num_cycles));
  }
}

// Counts each step as done, so that the first one has a rate and the last one has the smallest.
double LrSchedule::never_zero_factor(int64_t done) const {
  if (done < warmup_steps) {
    if (options.first_rate < 0) return share(done + 1, warmup_steps);
    return options.first_rate + (1.0 - options.first_rate) * share(done, warmup_steps - 1);
  }
  const double progress = share(done + 1 - warmup_steps, total_steps - warmup_steps);
  return above(options.min_rate, wave(progress, options.num_cycles));
}

double LrSchedule::root_factor(int64_t done) const {
  constexpr int64_t kTimescaleWithoutWarmUp = 10'000;
  int64_t timescale = options.timescale;
  if (timescale == 0) timescale = warmup_steps > 0 ? warmup_steps : kTimescaleWithoutWarmUp;
  return 1.0 / std::sqrt(share(done - warmup_steps + timescale, timescale));
}

// The steps at the peak may be fewer than none, as in transformers: then the fall is under way
// when the rise ends.
double LrSchedule::stable_factor(int64_t done) const {
  const double least = options.min_lr_ratio;
  if (done < warmup_steps)
    return above(least, rising(options.warmup_type, share(done, warmup_steps)));
  const int64_t stable = options.stable_steps >= 0
                             ? options.stable_steps
                             : total_steps - warmup_steps - options.decay_steps;
  const int64_t fallen = done - warmup_steps - stable;
  if (fallen < 0) return 1.0;
  if (fallen >= options.decay_steps) return least;
  const double progress = share(fallen, options.decay_steps);
  return above(least, falling(options.decay_type, progress, options.num_cycles));
}

LrSchedule schedule_of(const formats::Recipe& recipe, int64_t total_steps) {
  const bool has_min = recipe.min_lr > 0 && recipe.learning_rate > 0;
  return {
      .kind = recipe.lr_scheduler_type,
      .learning_rate = recipe.learning_rate,
      .warmup_steps = warmup_steps(recipe, total_steps),
      .total_steps = total_steps,
      .options = {.min_rate = has_min ? recipe.min_lr / recipe.learning_rate : recipe.min_lr_rate,
                  .num_cycles = recipe.num_cycles,
                  .stable_steps = recipe.num_stable_steps,
                  .decay_steps = recipe.num_decay_steps,
                  .warmup_type = recipe.warmup_type,
                  .decay_type = recipe.decay_type,
                  .min_lr_ratio = recipe.min_lr_ratio,
                  .first_rate = recipe.warmup_lr_rate,
                  .end_rate = recipe.learning_rate > 0 ? recipe.lr_end / recipe.learning_rate : 0.0,
                  .power = recipe.power,
                  .timescale = recipe.timescale}};
}

}  // namespace snug::train
