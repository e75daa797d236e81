// One to three outputs are computed at a time. Their rows are consecutive in memory, so reads form
// one stream. The following cache lines are prefetched into the second-level cache, for which a
// processor can have more requests in flight than for the first-level cache.
#include "backends/cpu/product/kernels/few_rows.h"

#include <type_traits>

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// The number of outputs at a time: as many as can have their sums in registers while their rows of
// the matrix form only a few streams.
constexpr int outputs_of(int rows) {
  if (rows == 1 || (rows > 2 && kRegisterLanes < 16)) return 1;
  return rows <= 4 ? 2 : 3;
}
// The smallest distance of prefetches ahead of the reads.
constexpr int64_t kMinAheadBytes = 4096;

// One step: sum += x * w over kStep elements. Instructions that multiply pairs of bf16 take twice
// as many elements.
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

// The last elements of a row, padded with zeros.
template <typename X>
SNUG_INLINE void pad(const X* from, int64_t n, X (&to)[kStep<X>]) {
  for (int64_t i = 0; i < kStep<X>; ++i) to[i] = i < n ? from[i] : X{};
}

// Multiplies rows from `row` on with outputs from `output` on. Meanwhile it prefetches lines of
// kAsked later outputs, starting with output `asked`.
struct Outputs {
  int64_t row;
  int64_t output;
  int64_t asked;
};

template <int kRows, int kWide, int kAsked, typename X>
SNUG_INLINE void multiply_outputs(const FewRowsProduct& product, const Outputs& part) {
  const X* x = static_cast<const X*>(product.x) + part.row * product.x_stride;
  const X* w = static_cast<const X*>(product.w) + part.output * product.w_stride;
  const int64_t after = kWide * product.w_stride;
  constexpr int64_t kMinAhead = kMinAheadBytes / int64_t{sizeof(X)};
  const X* ahead = w + larger_of(after, kMinAhead);
  Float16Lanes sums[kRows][kWide] = {};
  int64_t at = 0;
  for (; at + kStep<X> <= product.k; at += kStep<X>) {
    for (int i = 0; i < kAsked; ++i)
      __builtin_prefetch(ahead + (part.asked + i) * product.w_stride + at, 0, 2);
    for (int i = 0; i < kWide; ++i)
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
      product.sums[(part.row + row) * columns + part.output - product.begin + i] =
          reduce_add(sums[row][i]);
}

template <int kRows, typename X>
void multiply_rows(const FewRowsProduct& product) {
  constexpr int kWide = outputs_of(kRows);
  int64_t output = product.begin;
  for (; output + kWide <= product.end; output += kWide)
    multiply_outputs<kRows, kWide, kWide, X>(product, {0, output, 0});
  for (; output < product.end; ++output) multiply_outputs<kRows, 1, 1, X>(product, {0, output, 0});
}

template <typename X, int kRows>
void multiply_up_to(const FewRowsProduct& product) {
  if constexpr (kRows > 1)
    if (product.rows < kRows) return multiply_up_to<X, kRows - 1>(product);
  multiply_rows<kRows, X>(product);
}

#if defined(__AVX512BF16__)
// If the rows are too many for their sums to stay in registers, they are divided into groups; all
// groups after the first find the outputs' rows in a cache.
constexpr int kTogether = 8;
constexpr int kRowsOfGroup = 4;

// Multiplies the rows of a group; the last group may have fewer.
template <int kWide, int kAsked, typename X, int kRows = kRowsOfGroup>
SNUG_INLINE void multiply_group(const FewRowsProduct& product, const Outputs& part) {
  if constexpr (kRows > 1)
    if (product.rows - part.row < kRows)
      return multiply_group<kWide, kAsked, X, kRows - 1>(product, part);
  multiply_outputs<kRows, kWide, kAsked, X>(product, part);
}

// Computes as many outputs at a time as there are groups: each group prefetches the lines of one
// output.
template <int kGroups, typename X>
void multiply_groups(const FewRowsProduct& product) {
  int64_t output = product.begin;
  for (; output + kGroups <= product.end; output += kGroups)
    for (int group = 0; group < kGroups; ++group)
      multiply_group<kGroups, 1, X>(product, {group * kRowsOfGroup, output, group});
  for (; output < product.end; ++output)
    for (int group = 0; group < kGroups; ++group)
      multiply_group<1, 0, X>(product, {group * kRowsOfGroup, output, 0});
}

void multiply_pairs(const FewRowsProduct& product) {
  static_assert(kFewRowsOfPairs == 4 * kRowsOfGroup);
  if (product.rows > 3 * kRowsOfGroup) return multiply_groups<4, uint16_t>(product);
  if (product.rows > kTogether) return multiply_groups<3, uint16_t>(product);
  multiply_up_to<uint16_t, kTogether>(product);
}
#endif

template <typename X>
void multiply(const FewRowsProduct& product) {
#if defined(__AVX512BF16__)
  if constexpr (std::is_same_v<X, uint16_t>) return multiply_pairs(product);
#endif
  multiply_up_to<X, kFewRows>(product);
}

}  // namespace

extern const FewRowsKernels kFewRowsKernels;
const FewRowsKernels kFewRowsKernels = {.multiply = SNUG_BY_ELEMENT(multiply)};

}  // namespace snug::backends::cpu::SNUG_ISA
