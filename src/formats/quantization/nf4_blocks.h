// Quantises whole blocks of NF4, in a portable form and in a form for CPUs with AVX2. Both give the
// same bytes, and quantize_nf4 chooses. Only for nf4.cpp and its tests.
#pragma once

#include "base/dtype.h"

#include <cstdint>

namespace snug::formats {

// Quantises `blocks` * 64 elements of f32, bf16 or f16 (others fail a CHECK) to 32 bytes and one
// absmax per block.
void quantize_blocks_portably(base::DType from, const void* source, int64_t blocks, uint8_t* codes,
                              float* absmax);

// Whether this CPU runs the AVX2 form.
bool runs_avx2();
void quantize_blocks_avx2(base::DType from, const void* source, int64_t blocks, uint8_t* codes,
                          float* absmax);

// An absmax below this is raised to it before elements are scaled, so that its reciprocal is
// finite.
inline constexpr float kNf4LeastScale = 1e-38F;

}  // namespace snug::formats
