// A few outputs at a time: as many chains of sums for each row. What the next ones read is asked
// for meanwhile; processors look less far ahead by themselves.
#include "backends/cpu/kernels/few_rows.h"

#include <type_traits>

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// As many as have their sums in registers, up to eight: more of the memory is under way at once.
template <int kRows>
constexpr int kOutputs = kRegisterLanes < 16 ? 4
                         : kRows <= 2        ? 8
                         : kRows <= 4        ? 4
                         : kRows <= 6        ? 3
                                             : 2;

// Elements of one step, and a step: sum += x w over them. Instructions that multiply pairs of bf16
// take twice as many.
SNUG_INLINE Float16Lanes add_products(Float16Lanes sum, const float* x, const float* w) {
  return multiply_add(load(x), load(w), sum);
}
SNUG_INLINE Float16Lanes add_products(Float16Lanes sum, const Fp16* x, const Fp16* w) {
  return multiply_add(load(x), load(w), sum);
}
template <typename X>
constexpr int64_t kStep = kLanes;
#if defined(__AVX512BF16__)
template <>
constexpr int64_t kStep<uint16_t> = 2 * kLanes;

SNUG_INLINE Float16Lanes add_products(Float16Lanes sum, const uint16_t* x, const uint16_t* w) {
  return add_pair_products(sum, _mm512_loadu_si512(x), _mm512_loadu_si512(w));
}
#else
SNUG_INLINE Float16Lanes add_products(Float16Lanes sum, const uint16_t* x, const uint16_t* w) {
  return multiply_add(load(x), load(w), sum);
}
#endif

// The last elements of a row, followed by zeros.
template <typename X>
SNUG_INLINE void pad(const X* from, int64_t n, X (&to)[kStep<X>]) {
  for (int64_t i = 0; i < kStep<X>; ++i) to[i] = i < n ? from[i] : X{};
}

template <int kRows, int kWide, typename X>
SNUG_INLINE void multiply_outputs(const FewRowsProduct& product, int64_t output) {
  const X* x = static_cast<const X*>(product.x);
  const X* w = static_cast<const X*>(product.w) + output * product.w_stride;
  Float16Lanes sums[kRows][kWide] = {};
  int64_t at = 0;
  for (; at + kStep<X> <= product.k; at += kStep<X>)
    for (int i = 0; i < kWide; ++i) {
      __builtin_prefetch(w + (i + kWide) * product.w_stride + at);
      for (int row = 0; row < kRows; ++row)
        sums[row][i] = add_products(sums[row][i], x + row * product.x_stride + at,
                                    w + i * product.w_stride + at);
    }
  if (at < product.k)
    for (int i = 0; i < kWide; ++i) {
      X last_w[kStep<X>];
      pad(w + i * product.w_stride + at, product.k - at, last_w);
      for (int row = 0; row < kRows; ++row) {
        X last_x[kStep<X>];
        pad(x + row * product.x_stride + at, product.k - at, last_x);
        sums[row][i] = add_products(sums[row][i], last_x, last_w);
      }
    }
  const int64_t columns = product.end - product.begin;
  for (int row = 0; row < kRows; ++row)
    for (int i = 0; i < kWide; ++i)
      product.sums[row * columns + output - product.begin + i] = reduce_add(sums[row][i]);
}

template <int kRows, typename X>
void multiply_rows(const FewRowsProduct& product) {
  int64_t output = product.begin;
  for (; output + kOutputs<kRows> <= product.end; output += kOutputs<kRows>)
    multiply_outputs<kRows, kOutputs<kRows>, X>(product, output);
  for (; output < product.end; ++output) multiply_outputs<kRows, 1, X>(product, output);
}

template <typename X>
void multiply(const FewRowsProduct& product) {
#if defined(__AVX512BF16__)
  if constexpr (std::is_same_v<X, uint16_t>) {
    switch (product.rows) {
      case 5:
        return multiply_rows<5, X>(product);
      case 6:
        return multiply_rows<6, X>(product);
      case 7:
        return multiply_rows<7, X>(product);
      case 8:
        return multiply_rows<8, X>(product);
      default:
        break;
    }
  }
#endif
  switch (product.rows) {
    case 1:
      return multiply_rows<1, X>(product);
    case 2:
      return multiply_rows<2, X>(product);
    case 3:
      return multiply_rows<3, X>(product);
    default:
      return multiply_rows<4, X>(product);
  }
}

}  // namespace

extern const FewRowsKernels kFewRowsKernels;
const FewRowsKernels kFewRowsKernels = {.multiply = SNUG_BY_ELEMENT(multiply)};

}  // namespace snug::backends::cpu::SNUG_ISA
