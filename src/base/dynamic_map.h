// The dynamic 8-bit maps: 256 values in [-1, 1] (or [0, 1]) whose spacing shrinks towards zero.
// They are the code of blockwise 8-bit optimizer states and of nested NF4 scales, and equal bit for
// bit what bitsandbytes' functional.create_dynamic_map makes (Dettmers et al., "8-bit optimizers
// via block-wise quantization", ICLR 2022).
//
// bitsandbytes encodes in two ways, and both are here, since there are files of both:
//   encode_dynamic          the nearest value, as its CUDA kernels and its PyTorch backend find it
//   encode_dynamic_lattice  the value nearest to one of 65,536 points of [-1, 1], as its compiled
//                           CPU library does; near zero it is far coarser than the map, and zero
//                           itself becomes 131 (signed) or 7 (unsigned)
// Both take an element divided by the largest magnitude of its block. Pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace snug::base {

using DynamicMap = std::array<float, 256>;

// Ascending. [0] = -0.992968738, [127] = 0, [255] = 1.
const DynamicMap& signed_dynamic_map();
// Ascending. [0] = 0, [255] = 1.
const DynamicMap& unsigned_dynamic_map();

// The index of the value nearest to x: between two neighbours by their fp32 midpoint, and at the
// midpoint itself the even index. NaN gives 0.
uint8_t encode_dynamic(const DynamicMap& map, float x);

// The index that bitsandbytes' CPU library stores for x. NaN gives 0.
uint8_t encode_dynamic_lattice(const DynamicMap& map, float x);

// The thresholds t for which encode_dynamic(map, x) is the number of t[i] <= x, for vectorised
// searches.
std::array<float, 255> dynamic_thresholds(const DynamicMap& map);

}  // namespace snug::base
