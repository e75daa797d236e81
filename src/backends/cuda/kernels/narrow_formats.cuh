// The 16-bit formats, for kernels that are compiled for each of them: how elements are widened, and
// how floats are rounded to them (to nearest, ties to even). A pair is one word, with the lower
// index in the lower half.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

struct Bf16 {
  static constexpr ElementFormat kFormat = ElementFormat::bf16;

  __device__ static float widen(uint32_t bits) { return __uint_as_float(bits << 16); }
  // Widens one element of a pair, which is cheaper than extracting it first.
  __device__ static float widen_low(uint32_t pair) { return __uint_as_float(pair << 16); }
  __device__ static float widen_high(uint32_t pair) { return __uint_as_float(pair & 0xffff0000U); }
  __device__ static uint32_t narrow(float value) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
  __device__ static uint32_t narrow_pair(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return __bfloat16_as_ushort(pair.x) | uint32_t{__bfloat16_as_ushort(pair.y)} << 16;
  }
};

struct F16 {
  static constexpr ElementFormat kFormat = ElementFormat::f16;

  __device__ static float widen(uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
  }
  __device__ static float widen_low(uint32_t pair) { return widen(pair & 0xffffU); }
  __device__ static float widen_high(uint32_t pair) { return widen(pair >> 16); }
  // Values that are too large become infinite.
  __device__ static uint32_t narrow(float value) {
    return __half_as_ushort(__float2half_rn(value));
  }
  __device__ static uint32_t narrow_pair(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return __half_as_ushort(pair.x) | uint32_t{__half_as_ushort(pair.y)} << 16;
  }
};

}  // namespace snug::backends::cuda
