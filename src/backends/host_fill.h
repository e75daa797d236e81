// Implements Backend::fill for backends whose device is the host. Several threads may fill distinct
// ranges.
#pragma once

#include "backends/formulas/random_values.h"
#include "backends/invocation.h"

namespace snug::backends {

// A range of a tensor's elements; `begin` is a multiple of kValueGroup.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
};
// `first` is the weight's element at which the tensor begins. CHECKs that the type is f32 or bf16.
void fill_on_host(const Buffer& tensor, const RandomValues& values, int64_t first,
                  const ElementRange& range);

}  // namespace snug::backends
