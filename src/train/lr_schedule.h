// Learning-rate schedules, the values of transformers' get_scheduler at every step.
#pragma once

#include <cstdint>

#include "formats/recipe/recipe.h"

namespace snug::train {

// What only some of them read; formats/recipe/schedule_keys.h.
struct ScheduleOptions {
  double min_rate = 0.0;  // share of the peak that the cosines with a minimum end with
  double num_cycles = 0.5;
  // Of warmup_stable_decay.
  int64_t stable_steps = -1;  // -1: all that neither rise nor fall
  int64_t decay_steps = 0;
  formats::Ramp warmup_type = formats::Ramp::linear;
  formats::Ramp decay_type = formats::Ramp::cosine;
  double min_lr_ratio = 0.0;  // share of the peak that it begins and ends with
  // Share of the peak that cosine_warmup_with_min_lr begins with; below 0: one step's share.
  double first_rate = -1.0;
  // Of polynomial.
  double end_rate = 0.0;  // share of the peak that it ends with
  double power = 1.0;
  int64_t timescale = 0;  // of inverse_sqrt, in steps; 0: the warm-up's, or 10,000
};

struct LrSchedule {
  formats::Schedule kind = formats::Schedule::cosine;
  double learning_rate = 0.0;  // the peak
  int64_t warmup_steps = 0;    // constant has none, whatever this says
  int64_t total_steps = 0;
  ScheduleOptions options = {};

  // Rate of optimizer step `step`, counting from 1. With warm-up, step 1 has rate 0, as there.
  double at(int64_t step) const;

 private:
  double factor(int64_t done) const;
  double falling_factor(int64_t done) const;
  double stable_factor(int64_t done) const;
  double never_zero_factor(int64_t done) const;
  double root_factor(int64_t done) const;
};

// The schedule that a recipe asks for. Its warm-up is warmup_steps if more than 0 (as a share,
// formats::steps_in), else ceil(warmup_ratio * total).
LrSchedule schedule_of(const formats::Recipe& recipe, int64_t total_steps);

}  // namespace snug::train
