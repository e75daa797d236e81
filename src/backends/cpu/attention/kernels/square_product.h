// A square product that is added to a start value other than its destination, for kernel files
// only.
#pragma once

#include "backends/cpu/product/kernels/block_product.h"

namespace snug::backends::cpu::SNUG_ISA {

constexpr int64_t kSquare = 32;

// c (kSquare, kSquare) = start + a (kSquare, k) b (k, kSquare), with operands as in
// block_product.h.
template <typename Element>
struct SquareProduct {
  const Element* a;
  int64_t a_stride;  // in elements
  const Element* b;
  int64_t b_stride;      // in units
  const float* start;    // null means zeros
  int64_t start_stride;  // 0 means the same row for all
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

template <>
inline void multiply_square(const SquareProduct<uint16_t>& p) {
  // gcc's tile loads do not declare that they read memory.
  __asm__ volatile("" ::: "memory");
  if (p.start != nullptr)
    load_square(p.start, p.start_stride);
  else
    zero_square();
  const uint16_t* b = p.b;
  for (int64_t k = 0; k < p.k; k += 32, b += 16 * p.b_stride * 2)
    add_to_square(p.a + k, p.a_stride, b, p.b_stride);
  store_square(p.c, p.c_stride);
  // gcc's tile stores do not declare that they write memory.
  __asm__ volatile("" ::: "memory");
}

#endif

}  // namespace snug::backends::cpu::SNUG_ISA
