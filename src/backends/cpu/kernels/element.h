// The element types that kernels read and write, as indices into their tables: `kernel[x][y]` takes
// x's type first, then y's. bf16 is stored as uint16_t, fp16 as Fp16. No kernel has both; their
// tables are null there.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

enum Element : uint8_t { kF32 = 0, kBf16 = 1, kF16 = 2 };
inline constexpr int kElements = 3;

// IEEE half precision as stored.
struct Fp16 {
  uint16_t bits;
};

}  // namespace snug::backends::cpu
