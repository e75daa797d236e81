// What the host gives a step so that its micro-batches add up to means: numbers that follow from
// counts of the whole step's rows. An objective lists its own (methods/objective.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace snug::methods {

// Of the rows of a step on all ranks, or of a whole evaluation.
struct RowCounts {
  int64_t tokens = 0;          // of documents, of all streams, without padding
  int64_t trained_tokens = 0;  // that carry loss
  int64_t groups = 0;          // of documents that belong together: pairs
  int64_t leading_tokens = 0;  // trained, of the first document of each group
  int64_t desirable = 0;       // groups whose first document has the label 1
};

// A number that the programs of a step read under this name.
struct StepInput {
  std::string_view name;
  float (*value)(const RowCounts& counts);
};

// By which a sum becomes a mean; the sum over none is 0 and stays it.
constexpr float inverse(int64_t count) {
  return 1.0F / static_cast<float>(std::max<int64_t>(1, count));
}

// Of objectives whose documents belong together: the losses of tokens stay what they are, since
// they are added up in groups before anything is divided.
constexpr float one(const RowCounts& /*counts*/) { return 1.0F; }
constexpr float inverse_groups(const RowCounts& counts) { return inverse(counts.groups); }

}  // namespace snug::methods
