// Weights stored as NF4 to values, and values to NF4. The operands are those of
// program/kinds/product/nf4.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

inline constexpr int kNf4Values = 16;

// What a code stands for.
struct Nf4Values {
  float at[kNf4Values];
};
Nf4Values nf4_values();

struct Nf4Weight {
  const uint8_t* codes = nullptr;  // two a byte, the even element in the high half; 4-byte aligned
  const float* absmax = nullptr;   // a block of 64, unless nested
  const uint8_t* absmax_codes = nullptr;  // nested: a block of 64, and
  const float* nested_absmax = nullptr;   //   a block of 256 of those,
  const float* nested_map = nullptr;      //   what their codes stand for,
  const float* nested_offset = nullptr;   //   and what is added
};

struct DequantizeRun {
  Walk walk;  // of w
  Nf4Weight stored;
  DeviceRows w;
};
void dequantize_nf4(const DequantizeRun& run, cudaStream_t stream);

// Makes the codes and absmax of formats::quantize_nf4, bit for bit.
struct QuantizeNf4Run {
  DeviceRows values;  // one row, 16-byte aligned
  int64_t elements = 0;
  uint8_t* codes = nullptr;  // 4-byte aligned
  float* absmax = nullptr;   // a block of 64
};
void quantize_nf4(const QuantizeNf4Run& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
