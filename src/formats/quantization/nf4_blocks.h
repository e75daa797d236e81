// Whole blocks of NF4, in the readable form and in the form for processors with AVX2. Both give the
// same bytes; quantize_nf4 chooses. Not for callers outside nf4.cpp and its tests.
#pragma once

#include "base/dtype.h"

#include <cstdint>

namespace snug::formats {

// `blocks` * 64 elements of f32, bf16 or f16 (CHECKs others) to 32 bytes and one absmax a block.
void quantize_blocks_portably(base::DType from, const void* source, int64_t blocks, uint8_t* codes,
                              float* absmax);

// Does this processor run the other form?
bool runs_avx2();
void quantize_blocks_avx2(base::DType from, const void* source, int64_t blocks, uint8_t* codes,
                          float* absmax);

// Below this, absmax counts as this when elements are scaled, so that its reciprocal stays finite.
inline constexpr float kNf4LeastScale = 1e-38F;

}  // namespace snug::formats
