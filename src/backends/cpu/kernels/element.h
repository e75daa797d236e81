// Element types that kernels read and write, as indices into their tables: `kernel[x][y]` takes x's
// type first, then y's. bf16 is stored as uint16_t.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

enum Element : uint8_t { kF32 = 0, kBf16 = 1 };
inline constexpr int kElements = 2;

}  // namespace snug::backends::cpu
