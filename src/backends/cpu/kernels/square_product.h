// A square of sums that starts from something else than what it replaces, for kernel files only.
#pragma once

#include "backends/cpu/kernels/block_product.h"

namespace snug::backends::cpu::SNUG_ISA {

constexpr int64_t kSquare = 32;

// c (kSquare, kSquare) = start + a (kSquare, k) b (k, kSquare), operands as in block_product.h.
template <typename Element>
struct SquareProduct {
  const Element* a;
  int64_t a_stride;  // elements
  const Element* b;
  int64_t b_stride;      // units
  const float* start;    // null: zeros
  int64_t start_stride;  // 0: one row for all
  float* c;
  int64_t c_stride;
  int64_t k;
};

template <typename Element>
static void multiply_square(const SquareProduct<Element>& p) {
  if (p.start != nullptr && p.start != p.c)
    for (int64_t row = 0; row < kSquare; ++row)
      for (int64_t i = 0; i < kSquare; ++i)
        p.c[row * p.c_stride + i] = p.start[row * p.start_stride + i];
  multiply_blocks(BlockProduct<Element>{.a = p.a,
                                        .a_stride = p.a_stride,
                                        .b = p.b,
                                        .b_stride = p.b_stride,
                                        .c = p.c,
                                        .c_stride = p.c_stride,
                                        .m = kSquare,
                                        .n = kSquare,
                                        .k = p.k,
                                        .accumulate = p.start != nullptr});
}

#if defined(__AMX_BF16__)

// Tiles 0 to 3 hold the sums, 4 and 5 rows of a, 6 and 7 columns of b.
template <>
inline void multiply_square(const SquareProduct<uint16_t>& p) {
  // gcc's tile loads do not say that they read memory.
  __asm__ volatile("" ::: "memory");
  const int64_t a_bytes = p.a_stride * 2;
  const int64_t b_bytes = p.b_stride * 4;
  const int64_t c_bytes = p.c_stride * 4;
  if (p.start != nullptr) {
    const int64_t start_bytes = p.start_stride * 4;
    _tile_loadd(0, p.start, start_bytes);
    _tile_loadd(1, p.start + 16, start_bytes);
    _tile_loadd(2, p.start + 16 * p.start_stride, start_bytes);
    _tile_loadd(3, p.start + 16 * p.start_stride + 16, start_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const uint16_t* a = p.a;
  const uint16_t* b = p.b;
  for (int64_t k = 0; k < p.k; k += 32) {
    _tile_loadd(4, a + k, a_bytes);
    _tile_loadd(6, b, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 32, b_bytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + 16 * p.a_stride + k, a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    b += 16 * p.b_stride * 2;
  }
  _tile_stored(0, p.c, c_bytes);
  _tile_stored(1, p.c + 16, c_bytes);
  _tile_stored(2, p.c + 16 * p.c_stride, c_bytes);
  _tile_stored(3, p.c + 16 * p.c_stride + 16, c_bytes);
  // Nor do its stores say that they write it.
  __asm__ volatile("" ::: "memory");
}

#endif

}  // namespace snug::backends::cpu::SNUG_ISA
