// Dequantises weights stored as NF4, and quantises values to NF4. The operands are those of
// program/kinds/product/nf4.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

inline constexpr int kNf4Values = 16;

// The value of each code.
struct Nf4Values {
  float at[kNf4Values];
};
Nf4Values nf4_values();

struct Nf4Weight {
  const uint8_t* codes = nullptr;         // two per byte, the even element in the high half; 4-byte
                                          // aligned
  const float* absmax = nullptr;          // one per block of 64, unless nested
  const uint8_t* absmax_codes = nullptr;  // nested: one code per block of 64,
  const float* nested_absmax = nullptr;   //   one scale per 256 of these codes,
  const float* nested_map = nullptr;      //   the values of the codes,
  const float* nested_offset = nullptr;   //   and what is added to them
};

struct DequantizeRun {
  Walk walk;  // over w
  Nf4Weight stored;
  DeviceRows w;
  // The element of the weight with which w begins: the first of a block.
  int64_t first = 0;
  // Of matrices of experts, (experts, 2): those of experts without rows are not made. Null: all
  // are.
  const int32_t* bounds = nullptr;
  int64_t matrix_elements = 0;
};
void dequantize_nf4(const DequantizeRun& run, cudaStream_t stream);

// Computes the codes and absmax of formats::quantize_nf4, bit for bit.
struct QuantizeNf4Run {
  DeviceRows values;  // one row, aligned to 16 bytes
  int64_t elements = 0;
  uint8_t* codes = nullptr;  // aligned to 4 bytes
  float* absmax = nullptr;   // one per block of 64
};
void quantize_nf4(const QuantizeNf4Run& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
