// One to four outputs are computed at a time. Their rows are consecutive in memory, so reads form
// one stream. The following cache lines are prefetched into the second-level cache, for which a
// processor can have more requests in flight than for the first-level cache.
#include "backends/cpu/product/kernels/few_rows.h"

#include <type_traits>

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lane_sums.h"
#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// The number of outputs at a time: as many as can have their sums in registers while their rows of
// the matrix form only a few streams.
constexpr int outputs_of(int rows) {
  return rows == 1 || (rows > 2 && kRegisterLanes < 16) ? 1 : 2;
}
// The smallest distance of prefetches ahead of the reads.
constexpr int64_t kMinAheadBytes = 4096;

// One step: sum += x * w over kStep elements. Instructions that multiply pairs of bf16 take twice
// as many elements.
template <typename X>
SNUG_INLINE Float16Lanes load_step(const X* x) {
  return load(x);
}
SNUG_INLINE Float16Lanes add_products(Float16Lanes sum, Float16Lanes x, Float16Lanes w) {
  return multiply_add(x, w, sum);
}
template <typename X>
constexpr int64_t kStep = kLanes;
#if defined(__AVX512BF16__)
template <>
constexpr int64_t kStep<uint16_t> = 2 * kLanes;

SNUG_INLINE __m512i load_step(const uint16_t* x) {
  __m512i step = _mm512_loadu_si512(x);
  // Otherwise gcc 12 loads it again for each use: loads take as long as the products.
  __asm__("" : "+v"(step));
  return step;
}
SNUG_INLINE Float16Lanes add_products(Float16Lanes sum, __m512i x, __m512i w) {
  return add_pair_products(sum, x, w);
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

template <int kRows, int kWide>
SNUG_INLINE void write_sums(const FewRowsProduct& product, const Outputs& part,
                            const Float16Lanes (&sums)[kRows][kWide]) {
  const int64_t columns = product.end - product.begin;
  float* to = product.sums + part.row * columns + part.output - product.begin;
  constexpr int kSums = kRows * kWide;
  static_assert(kSums <= kSumsAtOnce);
  // For fewer sums, those of the lanes one by one take no longer.
  constexpr int kFewest = 6;
  if constexpr (kSums >= kFewest) {
    Float16Lanes each[kSumsAtOnce] = {};
    for (int i = 0; i < kSums; ++i) each[i] = sums[i / kWide][i % kWide];
    float all[kSumsAtOnce];
    store(all, lane_sums(each));
    for (int row = 0; row < kRows; ++row)
      __builtin_memcpy(to + row * columns, all + row * kWide, kWide * sizeof(float));
  } else {
    for (int row = 0; row < kRows; ++row)
      for (int i = 0; i < kWide; ++i) to[row * columns + i] = reduce_add(sums[row][i]);
  }
}

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
    decltype(load_step(w)) of_w[kWide];
    for (int i = 0; i < kWide; ++i) of_w[i] = load_step(w + i * product.w_stride + at);
    for (int row = 0; row < kRows; ++row) {
      const auto of_x = load_step(x + row * product.x_stride + at);
      for (int i = 0; i < kWide; ++i) sums[row][i] = add_products(sums[row][i], of_x, of_w[i]);
    }
  }
  if (at < product.k)
    for (int i = 0; i < kWide; ++i) {
      X last_w[kStep<X>];
      pad(w + i * product.w_stride + at, product.k - at, last_w);
      for (int row = 0; row < kRows; ++row) {
        X last_x[kStep<X>];
        pad(x + row * product.x_stride + at, product.k - at, last_x);
        sums[row][i] = add_products(sums[row][i], load_step(last_x), load_step(last_w));
      }
    }
  write_sums<kRows, kWide>(product, part, sums);
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
// Groups of up to four rows are multiplied with four outputs at a time: the sums of more would not
// stay in registers next to what they are made of. All groups after the first find the outputs'
// rows in a cache.
constexpr int kRowsOfGroup = 4;
constexpr int kOutputsOfGroup = 4;

// Multiplies the rows of a group; the last group may have fewer.
template <int kWide, int kAsked, typename X, int kRows = kRowsOfGroup>
SNUG_INLINE void multiply_group(const FewRowsProduct& product, int64_t rows, const Outputs& part) {
  if constexpr (kRows > 1)
    if (rows < kRows) return multiply_group<kWide, kAsked, X, kRows - 1>(product, rows, part);
  multiply_outputs<kRows, kWide, kAsked, X>(product, part);
}

// The first groups prefetch kAsked outputs each, until all are asked for.
template <int kGroups, typename X>
void multiply_groups(const FewRowsProduct& product) {
  constexpr int kAsked = (kOutputsOfGroup + kGroups - 1) / kGroups;
  const int64_t most = (product.rows + kGroups - 1) / kGroups;
  int64_t output = product.begin;
  for (; output + kOutputsOfGroup <= product.end; output += kOutputsOfGroup)
    for (int64_t row = 0, asked = 0; row < product.rows; row += most, asked += kAsked) {
      const int64_t rows = smaller_of(most, product.rows - row);
      if (asked < kOutputsOfGroup)
        multiply_group<kOutputsOfGroup, kAsked, X>(product, rows, {row, output, asked});
      else
        multiply_group<kOutputsOfGroup, 0, X>(product, rows, {row, output, 0});
    }
  for (; output < product.end; ++output)
    for (int64_t row = 0; row < product.rows; row += most)
      multiply_group<1, 0, X>(product, smaller_of(most, product.rows - row), {row, output, 0});
}

void multiply_pairs(const FewRowsProduct& product) {
  static_assert(kFewRowsOfPairs == 4 * kRowsOfGroup);
  if (product.rows > 3 * kRowsOfGroup) return multiply_groups<4, uint16_t>(product);
  if (product.rows > 2 * kRowsOfGroup) return multiply_groups<3, uint16_t>(product);
  if (product.rows > kRowsOfGroup) return multiply_groups<2, uint16_t>(product);
  if (product.rows > 2) return multiply_groups<1, uint16_t>(product);
  multiply_up_to<uint16_t, 2>(product);
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
