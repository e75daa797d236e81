// Dequantises NF4 in registers: eight codes are four bytes of one block.
#pragma once

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/product/kernels/nf4.h"

namespace snug::backends::cuda {

// Copies the 16 values of codes to shared memory, where they are in 16 banks, so that lanes that
// look up different codes do not wait for each other. The whole block must call it.
__device__ inline void share_table(const Nf4Values& values, float (&table)[kNf4Values]) {
  if (threadIdx.x < kNf4Values) table[threadIdx.x] = values.at[threadIdx.x];
  __syncthreads();
}

__device__ inline float scale_of(const Nf4Weight& stored, int64_t block) {
  if (stored.absmax != nullptr) return stored.absmax[block];
  const float map = stored.nested_map[stored.absmax_codes[block]];
  // Two roundings, as the format defines it.
  return __fadd_rn(__fmul_rn(map, stored.nested_absmax[block / 256]), *stored.nested_offset);
}

// Decodes kCount elements from `element` on, which is a multiple of kCount; kCount is 1 or 8.
template <int kCount>
__device__ inline Elements<kCount> decode(const Nf4Weight& stored, int64_t element,
                                          const float (&table)[kNf4Values]) {
  const float scale = scale_of(stored, element / 64);
  Elements<kCount> values;
  if constexpr (kCount == 1) {
    const uint32_t pair = stored.codes[element / 2];
    values.at[0] = table[element % 2 == 0 ? pair >> 4 : pair & 15U] * scale;
  } else {
    const uint32_t pairs = *reinterpret_cast<const uint32_t*>(stored.codes + element / 2);
    for (int i = 0; i < kCount; ++i) {
      const int shift = i / 2 * 8 + (i % 2 == 0 ? 4 : 0);
      values.at[i] = table[pairs >> shift & 15U] * scale;
    }
  }
  return values;
}

}  // namespace snug::backends::cuda
