// By how much two results of an attention differ, for a check of the library (library_check.h), and
// random values for it. Host code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/invocation.h"

namespace snug::backends::cuda {

// Values of a 16-bit matrix of mean 0 and this deviation, none beyond three of it, with the gaps
// between rows.
std::vector<uint16_t> random_matrix(const Buffer& matrix, double deviation, uint32_t stream);

// The largest share of a segment's norm by which `library` differs from `own`; of a segment whose
// norm is small, the share of a tenth of what a segment of its size has on average. NaN where a
// number is none. `layout` is (tokens, columns), or of an lse (heads, tokens) in f32, where the
// difference itself counts, since it is an exponent. Of `bounds` (segments, 2).
double largest_difference(const Buffer& layout, std::span<const std::byte> own,
                          std::span<const std::byte> library, std::span<const int32_t> bounds);

}  // namespace snug::backends::cuda
