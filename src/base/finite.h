// Finds infinities and NaNs in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"

namespace snug::base {

// The index of the first element that is infinite or NaN; nothing when there is none, or when the
// type holds integers. `values` are aligned for their type.
std::optional<int64_t> first_not_finite(DType type, const void* values, int64_t elements);

}  // namespace snug::base
