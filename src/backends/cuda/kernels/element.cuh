// Elements in registers: kCount neighbours of a row as floats, read from and written to f32 or
// bf16. The type is looked at by each access; it is the same for all threads, so no warp diverges.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "backends/cuda/device.cuh"
#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

template <int kCount>
struct Elements {
  float at[kCount];
};

__device__ inline float bf16_to_float(uint32_t bits) { return __uint_as_float(bits << 16); }
__device__ inline uint32_t float_to_bf16(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
// The first of two in the lower half.
__device__ inline uint32_t float_pair_to_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return __bfloat16_as_ushort(pair.x) | uint32_t{__bfloat16_as_ushort(pair.y)} << 16;
}

__device__ inline float load_one(const DeviceRows& x, int64_t offset) {
  if (x.is_bf16) return bf16_to_float(static_cast<const uint16_t*>(x.data)[offset]);
  return static_cast<const float*>(x.data)[offset];
}

__device__ inline void store_one(const DeviceRows& x, int64_t offset, float value) {
  if (x.is_bf16)
    static_cast<uint16_t*>(x.data)[offset] = static_cast<uint16_t>(float_to_bf16(value));
  else
    static_cast<float*>(x.data)[offset] = value;
}

// kCount is 1, or kVectorElements at an offset that is aligned to 16 bytes.
template <int kCount>
__device__ inline Elements<kCount> load(const DeviceRows& x, int64_t offset) {
  Elements<kCount> elements;
  if constexpr (kCount == 1) {
    elements.at[0] = load_one(x, offset);
  } else if (x.is_bf16) {
    const Vector16 pairs = load_vector(static_cast<const uint16_t*>(x.data) + offset);
    for (int i = 0; i < kCount; ++i)
      elements.at[i] =
          bf16_to_float(i % 2 == 0 ? pairs.word[i / 2] & 0xffffU : pairs.word[i / 2] >> 16);
  } else {
    const float* from = static_cast<const float*>(x.data) + offset;
    const Vector16 low = load_vector(from);
    const Vector16 high = load_vector(from + 4);
    for (int i = 0; i < kCount; ++i)
      elements.at[i] = __uint_as_float(i < 4 ? low.word[i % 4] : high.word[i % 4]);
  }
  return elements;
}

template <int kCount>
__device__ inline void store(const DeviceRows& x, int64_t offset,
                             const Elements<kCount>& elements) {
  if constexpr (kCount == 1) {
    store_one(x, offset, elements.at[0]);
  } else if (x.is_bf16) {
    Vector16 pairs;
    for (int i = 0; i < kCount / 2; ++i)
      pairs.word[i] = float_to_bf16(elements.at[2 * i]) | float_to_bf16(elements.at[2 * i + 1])
                                                              << 16;
    store_vector(static_cast<uint16_t*>(x.data) + offset, pairs);
  } else {
    float* to = static_cast<float*>(x.data) + offset;
    Vector16 low;
    Vector16 high;
    for (int i = 0; i < 4; ++i) {
      low.word[i] = __float_as_uint(elements.at[i]);
      high.word[i] = __float_as_uint(elements.at[i + 4]);
    }
    store_vector(to, low);
    store_vector(to + 4, high);
  }
}

}  // namespace snug::backends::cuda
