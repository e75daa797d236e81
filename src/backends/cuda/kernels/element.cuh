// Elements in registers: kCount adjacent elements of a row as floats, read from and written to any
// of the formats. Each access branches on the format, which is the same for all threads, so no warp
// diverges.
#pragma once

#include <cstdint>

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/narrow_formats.cuh"

namespace snug::backends::cuda {

template <int kCount>
struct Elements {
  float at[kCount];
};

// The value that a tensor of this format holds for `value`.
__device__ inline float as_held(ElementFormat format, float value) {
  if (format == ElementFormat::f32) return value;
  if (format == ElementFormat::f16) return F16::widen(F16::narrow(value));
  return Bf16::widen(Bf16::narrow(value));
}

__device__ inline float load_one(const DeviceRows& x, int64_t offset) {
  if (x.format == ElementFormat::f32) return static_cast<const float*>(x.data)[offset];
  const uint16_t bits = static_cast<const uint16_t*>(x.data)[offset];
  return x.format == ElementFormat::f16 ? F16::widen(bits) : Bf16::widen(bits);
}

__device__ inline void store_one(const DeviceRows& x, int64_t offset, float value) {
  if (x.format == ElementFormat::f32) {
    static_cast<float*>(x.data)[offset] = value;
    return;
  }
  const uint32_t bits = x.format == ElementFormat::f16 ? F16::narrow(value) : Bf16::narrow(value);
  static_cast<uint16_t*>(x.data)[offset] = static_cast<uint16_t>(bits);
}

template <typename Format, int kCount>
__device__ inline void widen_pairs(const Vector16& pairs, Elements<kCount>& elements) {
  for (int i = 0; i < kCount; i += 2) {
    elements.at[i] = Format::widen_low(pairs.word[i / 2]);
    elements.at[i + 1] = Format::widen_high(pairs.word[i / 2]);
  }
}

template <typename Format, int kCount>
__device__ inline void narrow_pairs(const Elements<kCount>& elements, Vector16& pairs) {
  for (int i = 0; i < kCount; i += 2)
    pairs.word[i / 2] = Format::narrow_pair(elements.at[i], elements.at[i + 1]);
}

// kCount is 1, or kVectorElements at an offset that is aligned to 16 bytes.
template <int kCount>
__device__ inline Elements<kCount> load(const DeviceRows& x, int64_t offset) {
  Elements<kCount> elements;
  if constexpr (kCount == 1) {
    elements.at[0] = load_one(x, offset);
  } else if (x.format == ElementFormat::f32) {
    const float* from = static_cast<const float*>(x.data) + offset;
    const Vector16 low = load_vector(from);
    const Vector16 high = load_vector(from + 4);
    for (int i = 0; i < kCount; ++i)
      elements.at[i] = __uint_as_float(i < 4 ? low.word[i % 4] : high.word[i % 4]);
  } else {
    const Vector16 pairs = load_vector(static_cast<const uint16_t*>(x.data) + offset);
    if (x.format == ElementFormat::f16)
      widen_pairs<F16>(pairs, elements);
    else
      widen_pairs<Bf16>(pairs, elements);
  }
  return elements;
}

template <int kCount>
__device__ inline void store(const DeviceRows& x, int64_t offset,
                             const Elements<kCount>& elements) {
  if constexpr (kCount == 1) {
    store_one(x, offset, elements.at[0]);
  } else if (x.format == ElementFormat::f32) {
    float* to = static_cast<float*>(x.data) + offset;
    Vector16 low;
    Vector16 high;
    for (int i = 0; i < 4; ++i) {
      low.word[i] = __float_as_uint(elements.at[i]);
      high.word[i] = __float_as_uint(elements.at[i + 4]);
    }
    store_vector(to, low);
    store_vector(to + 4, high);
  } else {
    Vector16 pairs;
    if (x.format == ElementFormat::f16)
      narrow_pairs<F16>(elements, pairs);
    else
      narrow_pairs<Bf16>(elements, pairs);
    store_vector(static_cast<uint16_t*>(x.data) + offset, pairs);
  }
}

}  // namespace snug::backends::cuda
