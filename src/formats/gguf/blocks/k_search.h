// The search for the scales of sub-blocks of K kinds (k_layout.h): of several scales, each with the
// codes nearest to the values, the one with the least weighted error stays. Four sub-blocks that
// follow each other are searched together (k_lanes.h). Pure.
#pragma once

#include <array>
#include <cstdint>

#include "formats/gguf/blocks/k_lanes.h"

namespace snug::formats {

// value = scale * code + least, with codes from 0 to `highest` and a least value that is not above
// zero. The first scale spreads `highest` codes over the range of the values; trial i, from 0 to
// `last`, spreads highest + first + i * step.
struct AffineTrials {
  int highest = 0;
  float first = 0;
  float step = 0;
  int last = 0;
};
struct AffineFits {
  std::array<float, kSubBlockLanes> scales{};
  std::array<float, kSubBlockLanes> leasts{};
};
// Four sub-blocks of 32 values. Codes are in the order of the values.
AffineFits fit_affine(const float* values, const AffineTrials& trials, uint8_t* codes);

// value = scale * (code - zero), four sub-blocks of 16 values. The extreme value has code 0 in the
// first trial. All codes of a sub-block without values above 1e-15 are 0, and so is its scale.
using ScaleFits = std::array<float, kSubBlockLanes>;
// Codes of 6 bits, zero at 32, by trying 18 scales around the first.
ScaleFits fit_q6_k(const float* values, uint8_t* codes);
// Codes of 3 bits, zero at 4, by moving one code after the other.
ScaleFits fit_q3_k(const float* values, uint8_t* codes);

}  // namespace snug::formats
