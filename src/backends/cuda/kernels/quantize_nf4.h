// Values to NF4: the codes and absmax of formats::quantize_nf4, bit for bit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/dtype.h"

namespace snug::backends::cuda {

struct QuantizeNf4Run {
  const void* values = nullptr;           // 16-byte aligned
  base::DType dtype = base::DType::bf16;  // f32, bf16 or f16
  int64_t elements = 0;
  uint8_t* codes = nullptr;  // 4-byte aligned
  float* absmax = nullptr;   // a block of 64
};
void quantize_nf4(const QuantizeNf4Run& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
