// Infinities and what is no number, found where values lie.
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"

namespace snug::base {

// The first of these elements that is infinite or NaN; nothing when there is none, or where the
// type holds whole numbers. `values` are aligned for their type.
std::optional<int64_t> first_not_finite(DType type, const void* values, int64_t elements);

}  // namespace snug::base
