// Converts elements between the types in files and the types that programs compute in. Rounds to
// nearest, ties to even; values too large for the narrower type become infinite, NaN stays NaN.
// Pure; distinct destinations may be converted in parallel.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace snug::runtime {

// Converts from any float type to f32, bf16 or f16 (other types fail a CHECK). f64 is first rounded
// to f32 on its way to 16 bits. Source and destination must not overlap.
void convert(base::DType from, const void* source, base::DType to, void* destination,
             int64_t elements);

}  // namespace snug::runtime
