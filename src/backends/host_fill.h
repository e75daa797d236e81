// What Backend::fill does, for backends whose device is the host. Distinct ranges may be filled by
// several threads.
#pragma once

#include "backends/formulas/random_values.h"
#include "backends/invocation.h"

namespace snug::backends {

// Elements of a tensor, counted from its first; `begin` is a multiple of kValueGroup.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
};
// `first`: the element of the weight that the tensor begins with. CHECKs for f32 or bf16.
void fill_on_host(const Buffer& tensor, const RandomValues& values, int64_t first,
                  const ElementRange& range);

}  // namespace snug::backends
