// Codes of the dynamic 8-bit maps (base/dynamic_map.h), computed arithmetically on the device, with
// the same bits as base::encode_dynamic.
#pragma once

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/optimizer/kernels/optimizer.h"

namespace snug::backends::cuda {

inline constexpr int kMapSize = 256;
inline constexpr int kDecades = 7;

// A map's values in each decade of magnitude, from 10^-7 to 1, are evenly spaced, with twice as
// many as in the decade below: the position of x among them is slope * x + offset.
struct Decade {
  float slope;
  float offset;
};

// A map in the form that the threads of a block use.
struct Coding {
  float values[kMapSize];
  float thresholds[kMapSize];  // [i] is the smallest x whose code is above i; not for the last
  Decade decades[kDecades];
};

// The midpoint of two neighbours decides between them, and at the midpoint itself the even code
// wins (base::encode_dynamic).
__device__ inline float threshold(const float (&map)[kMapSize], int lower) {
  const float middle = (map[lower] + map[lower + 1]) * 0.5F;
  if (lower % 2 != 0) return middle;
  const unsigned bits = __float_as_uint(middle);
  if (middle == 0.0F) return __uint_as_float(1);
  return __uint_as_float(middle > 0.0F ? bits + 1 : bits - 1);
}

// `first` is the number of values in the lowest decade.
__device__ inline Decade decade(int number, int first) {
  const float count = static_cast<float>(first << number);
  float inverse = 1e6F;
  for (int i = 0; i < number; ++i) inverse *= 0.1F;
  const float below = count - static_cast<float>(first);
  return {count * inverse / 0.9F, below - count / 9.0F - 0.5F};
}

// The whole block must call it.
__device__ inline void share_codings(const DynamicMaps& maps, Coding (&codings)[2]) {
  for (int i = static_cast<int>(threadIdx.x); i < kMapSize; i += static_cast<int>(blockDim.x))
    for (int k = 0; k < 2; ++k) {
      codings[k].values[i] = maps.at[k][i];
      if (i + 1 < kMapSize) codings[k].thresholds[i] = threshold(maps.at[k], i);
      if (i < kDecades) codings[k].decades[i] = decade(i, k == 0 ? 1 : 2);
    }
}

// The index of the value nearest to x; NaN gives 0. The arithmetic finds the value just below x, or
// one next to it if x is at a value; the nearest is that one or the next, depending on the
// threshold between them.
__device__ inline int encode(const Coding& coding, float x, bool is_signed) {
  const float magnitude = is_signed ? fabsf(x) : x;
  constexpr float kLog10Of2 = 0.30103F;
  const float decade = __fmaf_rn(__log2f(magnitude), kLog10Of2, static_cast<float>(kDecades));
  const auto number = static_cast<int>(fminf(fmaxf(decade, 0.0F), kDecades - 1.0F));
  const Decade line = coding.decades[number];
  const int position = __float2int_rd(__fmaf_rn(magnitude, line.slope, line.offset));
  int lower = position + 1;
  if (is_signed) lower = x < 0.0F ? 125 - position : 128 + position;
  lower = min(max(lower, 0), kMapSize - 2);
  const int code = x >= coding.thresholds[lower] ? lower + 1 : lower;
  return x == x ? code : 0;
}

}  // namespace snug::backends::cuda
