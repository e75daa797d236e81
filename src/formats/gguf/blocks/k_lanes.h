// Four sub-blocks of a K kind at once, each in a lane of vectors that every processor has. A lane
// adds its values one after the other, in ggml's order, which decides the last bits of the sums and
// with them the codes; and still an instruction works for all four. What is decided by a condition
// is chosen lane by lane.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace snug::formats {

inline constexpr int kSubBlockLanes = 4;
using FloatLanes = float __attribute__((vector_size(4 * kSubBlockLanes)));
using IntLanes = int32_t __attribute__((vector_size(4 * kSubBlockLanes)));

// Element i holds value i, or the code of value i, of each of the four sub-blocks.
template <int kCount>
using LaneValues = std::array<FloatLanes, kCount>;
template <int kCount>
using LaneCodes = std::array<IntLanes, kCount>;

inline FloatLanes all_lanes(float value) { return FloatLanes{} + value; }
inline IntLanes all_lanes(int32_t value) { return IntLanes{} + value; }
inline FloatLanes as_floats(IntLanes value) { return __builtin_convertvector(value, FloatLanes); }

inline FloatLanes magnitudes(FloatLanes value) {
  return __builtin_bit_cast(FloatLanes, __builtin_bit_cast(IntLanes, value) & 0x7fffffff);
}

// Whether any lane of a comparison's result is true.
inline bool any_lane(IntLanes condition) {
  return (condition[0] | condition[1] | condition[2] | condition[3]) != 0;
}

// The nearest whole number, half-way cases to even: 1.5 * 2^23 is added, and the sum has no bits
// below 1. Magnitudes of 2^22 and more give other numbers, which ggml's bytes have as well.
inline IntLanes nearest_whole(FloatLanes value) {
  const FloatLanes sum = value + 12582912.0F;
  return (__builtin_bit_cast(IntLanes, sum) & 0x007fffff) - 0x00400000;
}
inline int32_t nearest_whole(float value) {
  const float sum = value + 12582912.0F;
  return (__builtin_bit_cast(int32_t, sum) & 0x007fffff) - 0x00400000;
}

inline IntLanes clamped(IntLanes value, int low, int high) {
  const IntLanes lowest = all_lanes(low);
  const IntLanes highest = all_lanes(high);
  value = value < lowest ? lowest : value;
  return value > highest ? highest : value;
}

template <int kCount>
LaneValues<kCount> lane_values(const float* values) {
  LaneValues<kCount> lanes;
  for (size_t i = 0; i < kCount; ++i)
    lanes[i] =
        FloatLanes{values[i], values[kCount + i], values[2 * kCount + i], values[3 * kCount + i]};
  return lanes;
}

// Codes in the order of the values.
template <int kCount>
void put_lane_codes(const LaneCodes<kCount>& lanes, uint8_t* codes) {
  for (size_t lane = 0; lane < kSubBlockLanes; ++lane)
    for (size_t i = 0; i < kCount; ++i)
      codes[lane * kCount + i] = static_cast<uint8_t>(lanes[i][lane]);
}

inline std::array<float, kSubBlockLanes> lane_array(FloatLanes value) {
  return {value[0], value[1], value[2], value[3]};
}

}  // namespace snug::formats
