// Learning-rate schedules with warm-up, the values of transformers' get_*_schedule_with_warmup.
#pragma once

#include <cstdint>

#include "formats/recipe.h"

namespace snug::train {

struct LrSchedule {
  formats::Schedule kind = formats::Schedule::cosine;
  double learning_rate = 0.0;  // the peak
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;

  // Rate of optimizer step `step`, counting from 1. With warm-up, step 1 has rate 0, as there.
  double at(int64_t step) const;
};

// warmup_steps if more than 0, else ceil(warmup_ratio * total).
int64_t warmup_steps(const formats::Recipe& recipe, int64_t total_steps);

}  // namespace snug::train
