// Weights stored as NF4, to values. The operands are those of program/kinds/nf4.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/operand.h"

namespace snug::backends::cuda {

inline constexpr int kNf4Values = 16;

// What a code stands for.
struct Nf4Values {
  float at[kNf4Values];
};
Nf4Values nf4_values();

struct StoredNf4 {
  const uint8_t* codes = nullptr;  // two a byte, the even element in the high half; 4-byte aligned
  const float* absmax = nullptr;   // a block of 64, unless nested
  const uint8_t* absmax_codes = nullptr;  // nested: a block of 64, and
  const float* nested_absmax = nullptr;   //   a block of 256 of those,
  const float* nested_map = nullptr;      //   what their codes stand for,
  const float* nested_offset = nullptr;   //   and what is added
};

struct DequantizeRun {
  Walk walk;  // of w
  StoredNf4 stored;
  Operand w;
};
void dequantize_nf4(const DequantizeRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
