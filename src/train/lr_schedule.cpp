#include "train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace snug::train {

double LrSchedule::at(int64_t step) const {
  const int64_t done = step - 1;
  if (done < warmup_steps)
    return learning_rate * static_cast<double>(done) /
           static_cast<double>(std::max<int64_t>(1, warmup_steps));
  if (kind == formats::Schedule::constant) return learning_rate;
  const auto decay = static_cast<double>(std::max<int64_t>(1, total_steps - warmup_steps));
  if (kind == formats::Schedule::linear)
    return learning_rate * std::max(0.0, static_cast<double>(total_steps - done) / decay);
  const double progress = static_cast<double>(done - warmup_steps) / decay;
  return learning_rate * std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
}

int64_t warmup_steps(const formats::Recipe& recipe, int64_t total_steps) {
  if (recipe.warmup_steps > 0) return recipe.warmup_steps;
  return static_cast<int64_t>(std::ceil(recipe.warmup_ratio * static_cast<double>(total_steps)));
}

}  // namespace snug::train
