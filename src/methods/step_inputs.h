// Numbers that the host gives to a step so that the sums over its micro-batches become means. They
// are computed from the counts of all rows of the step. Each objective lists its own
// (methods/objective.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace snug::methods {

// Counts over the rows of a step on all ranks, or of a whole evaluation.
struct RowCounts {
  int64_t tokens = 0;          // of documents, in all streams, without padding
  int64_t trained_tokens = 0;  // tokens that carry loss
  int64_t groups = 0;          // groups of documents that belong together, such as pairs
  int64_t leading_tokens = 0;  // trained tokens of the first document of each group
  int64_t desirable = 0;       // groups whose first document has label 1
};

// A number that the programs of a step read under this name.
struct StepInput {
  std::string_view name;
  float (*value)(const RowCounts& counts);
};

// The factor that turns a sum over `count` values into their mean. For no values it is 1, which
// leaves the sum 0.
constexpr float inverse(int64_t count) {
  return 1.0F / static_cast<float>(std::max<int64_t>(1, count));
}

// For objectives whose documents form groups: the losses of tokens are not scaled, since they are
// summed within groups before any division.
constexpr float one(const RowCounts& /*counts*/) { return 1.0F; }
constexpr float inverse_groups(const RowCounts& counts) { return inverse(counts.groups); }

}  // namespace snug::methods
