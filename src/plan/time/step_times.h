// Where the time of a step goes, by the clock: operations that are alike in every layer, together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/job/job.h"
#include "plan/time/rates.h"

namespace snug::plan {

struct TimedOperations : Estimate {  // of all of them together
  std::string program;
  std::string name;   // kind and what it writes, "matmul -> model.layers.*.mlp.up"
  std::string line;   // line_of their rate keys
  int64_t count = 0;  // in a step: micro_next runs accumulation - 1 times
};

// The operations of micro_first, micro_next and update, slowest first, without copies that go on
// next to the others. Their sum is step_seconds where nothing waits for such a copy.
std::vector<TimedOperations> step_times(const Job& job, int64_t accumulation, const Rates& rates,
                                        const program::ExpectedBounds& expected);

// "model.layers.7.mlp.up" of layer 7 -> "model.layers.*.mlp.up".
std::string without_layer(std::string_view name, int32_t layer);

}  // namespace snug::plan
