// The line that moves on a terminal while a run trains. Pure: a line is made of a step and of a
// width.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "train/step_metrics.h"

namespace snug::train {

struct ProgressState {
  int64_t total_steps = 0;
  double seconds_left = 0;
  double planned_share = 0;  // of the planned speed; 0: unknown
};

// "━━━━━····· step 50/600, loss 1.6176, lr 1.43e-05, 0:30 left, 451 tokens/s, 98 % of plan, ...":
// as many of these, in this order, as `columns` hold, after a bar where room is left for one.
// Without a line end. Makes no heap allocation.
std::string_view progress_line(const StepMetrics& metrics, const ProgressState& state,
                               int64_t columns, std::span<char> buffer);

}  // namespace snug::train
