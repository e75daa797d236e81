// The table of angles and the rotation. y may take x's bytes.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/operand.h"

namespace snug::backends::cuda {

struct RotaryTableRun {
  const int32_t* positions = nullptr;        // (tokens)
  const float* inverse_frequency = nullptr;  // (half)
  float* table = nullptr;                    // (tokens, 2 half)
  int64_t tokens = 0;
  int64_t half = 0;
  float factor = 1.0F;
};
void rotary_table(const RotaryTableRun& run, cudaStream_t stream);

struct RopeRun {
  Walk walk;  // of x and y; vectors only if half a head has whole ones
  Operand x, y;
  Operand table;  // (tokens, head_dim)
  int64_t head_dim = 0;
  int64_t turned_heads = 0;  // the heads beyond are copied
  bool inverse = false;
};
void rope(const RopeRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
