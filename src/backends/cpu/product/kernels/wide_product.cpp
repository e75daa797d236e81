#include "backends/cpu/product/kernels/wide_product.h"

#include <type_traits>

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/masked_lanes.h"
#include "backends/cpu/product/kernels/block_product.h"

namespace snug::backends::cpu::SNUG_ISA {

extern const WideKernels kWideKernels;

#if defined(__AMX_BF16__)

namespace {

constexpr int64_t kHalf = kWidePanel / 2;

struct NoAddend {};
// No addend, and a result that is written past the caches: its lines are not read first.
struct PastCaches : NoAddend {};

template <typename Addend>
SNUG_INLINE const Addend* moved(const Addend* addend, int64_t elements) {
  if constexpr (std::is_base_of_v<NoAddend, Addend>)
    return nullptr;
  else
    return addend + elements;
}

template <typename Addend>
SNUG_INLINE Float16Lanes scaled(const float* sums, Float16Lanes alpha, const Addend* addend,
                                __mmask16 lanes) {
  if constexpr (std::is_base_of_v<NoAddend, Addend>)
    return load(sums) * alpha;
  else
    return multiply_add(load(sums), alpha, load_some(addend, lanes));
}

// A block with finished sums, and its place in c. Its rows are written a few at a time.
template <typename C, typename Addend>
struct Unfinished {
  const float* sums;
  C* c;
  const Addend* addend;
  int64_t rows;  // 0 if there is no such block
  __mmask16 left, right;
};

// Stores to cache lines that are not cached would stall the tiles, so rows are prefetched one block
// ahead.
template <typename C, typename Addend>
SNUG_INLINE void prefetch_row(const Unfinished<C, Addend>& block, const WideResult& to,
                              int64_t row) {
  if constexpr (std::is_same_v<Addend, PastCaches>) return;
  __builtin_prefetch(block.c + row * to.c_stride, 1);
  if constexpr (sizeof(C) == 4) __builtin_prefetch(block.c + row * to.c_stride + kHalf, 1);
}

template <typename C, typename Addend>
SNUG_INLINE void finish_row(const Unfinished<C, Addend>& block, const WideResult& to,
                            Float16Lanes alpha, int64_t row) {
  const float* sums = block.sums + row * kWidePanel;
  const Addend* addend = moved(block.addend, row * to.addend_stride);
  C* c = block.c + row * to.c_stride;
  if constexpr (std::is_same_v<Addend, PastCaches>) {
    constexpr __mmask16 kAll = 0xffff;
    if ((block.left & block.right) == kAll && reinterpret_cast<uintptr_t>(c) % 64 == 0) {
      _mm512_stream_ps(c, reinterpret_cast<__m512>(load(sums) * alpha));
      _mm512_stream_ps(c + kHalf, reinterpret_cast<__m512>(load(sums + kHalf) * alpha));
      return;
    }
  }
  store_some(c, scaled(sums, alpha, addend, block.left), block.left);
  store_some(c + kHalf, scaled(sums + kHalf, alpha, moved(addend, kHalf), block.right),
             block.right);
}

// The factors of a square of sums.
struct Square {
  const uint16_t* a;
  const uint16_t* low_a;
  const uint16_t* b;
  const float* start;  // the sums of earlier steps; null means zeros
  int64_t start_stride;
};

// Some of the rows that are multiplied next, which are prefetched into the second-level cache.
struct NextRows {
  const uint16_t* a;
  int64_t stride;
  int64_t rows;  // 0 if there are none
};

SNUG_INLINE void fetch(const NextRows& next, int64_t k) {
  constexpr int kSecondLevel = 2;
  for (int64_t row = 0; row < next.rows; ++row)
    __builtin_prefetch(next.a + row * next.stride + k, 0, kSecondLevel);
}

// Computes the sums of `now`, which stay in the tiles, and writes rows of `before` meanwhile.
template <typename C, typename Addend>
SNUG_INLINE void multiply_square(const WideBlock& p, const Square& square, const NextRows& next,
                                 const Unfinished<C, Addend>& now,
                                 const Unfinished<C, Addend>& before, Float16Lanes alpha) {
  const uint16_t* b = square.b;
  const int64_t rows_per_step = (kWidePanel * kWidePanel + p.k - 1) / p.k;
  int64_t row = 0;
  if (square.start != nullptr)
    load_square(square.start, square.start_stride);
  else
    zero_square();
  for (int64_t k = 0; k < p.k; k += kWidePanel) {
    add_to_square(square.a + k, p.a_stride, b, kWidePanel);
    b += kWidePanel * kWidePanel;
    const int64_t end = smaller_of(kWidePanel, row + rows_per_step);
    for (; row < end; ++row) {
      if (row < now.rows) prefetch_row(now, p.result, row);
      if (row < before.rows) finish_row(before, p.result, alpha, row);
    }
    fetch(next, k);
  }
  for (int64_t k = 0; k < p.low_k; k += kWidePanel, b += kWidePanel * kWidePanel)
    add_to_square(square.low_a + k, p.low_a_stride, b, kWidePanel);
}

// A panel of a's rows stays in the caches while all panels of b are multiplied with it.
template <typename C, typename Addend>
void multiply_panels(const WideBlock& p) {
  const TilesInUse tiles;
  // gcc's tile loads do not declare that they read memory.
  __asm__ volatile("" ::: "memory");
  alignas(64) float sums[2][kWidePanel * kWidePanel];
  int next = 0;
  const Float16Lanes alpha = splat(p.result.alpha);
  Unfinished<C, Addend> before{};
  C* c = static_cast<C*>(p.result.c);
  const Addend* addend = static_cast<const Addend*>(p.result.addend);
  const int64_t panels = (p.columns + kWidePanel - 1) / kWidePanel;
  const int64_t rows_per_panel = (kWidePanel + panels - 1) / panels;
  for (int64_t i = 0; i < p.rows; i += kWidePanel) {
    const uint16_t* a = p.a + i * p.a_stride;
    const uint16_t* next_a = i + kWidePanel < p.rows ? a + kWidePanel * p.a_stride : nullptr;
    int64_t fetched = 0;
    for (int64_t j = 0; j < p.columns; j += kWidePanel) {
      const int64_t fetches =
          next_a == nullptr ? 0 : smaller_of(rows_per_panel, kWidePanel - fetched);
      float* const kept = p.sums + i * p.sums_stride + j;
      const Unfinished<C, Addend> now{
          .sums = sums[next],
          .c = c + i * p.result.c_stride + j,
          .addend = moved(addend, i * p.result.addend_stride + j),
          .rows = p.is_last_step ? smaller_of(kWidePanel, p.rows - i) : 0,
          .left = lanes_of(p.columns - j),
          .right = lanes_of(p.columns - j - kHalf)};
      multiply_square(p,
                      {.a = a,
                       .low_a = p.low_a + i * p.low_a_stride,
                       .b = p.b + j * (p.k + p.low_k),
                       .start = p.is_first_step ? nullptr : kept,
                       .start_stride = p.sums_stride},
                      {.a = next_a + fetched * p.a_stride, .stride = p.a_stride, .rows = fetches},
                      now, before, alpha);
      if (p.is_last_step)
        store_square(sums[next], kWidePanel);
      else
        store_square(kept, p.sums_stride);
      fetched += fetches;
      before = now;
      next = 1 - next;
    }
  }
  __asm__ volatile("" ::: "memory");
  for (int64_t row = 0; row < before.rows; ++row) finish_row(before, p.result, alpha, row);
  if constexpr (std::is_same_v<Addend, PastCaches>) _mm_sfence();
}

template <typename C>
void multiply_to(const WideBlock& p) {
  if constexpr (std::is_same_v<C, float>)
    if (p.result.past_caches && p.result.addend == nullptr)
      return multiply_panels<C, PastCaches>(p);
  if (p.result.addend == nullptr)
    multiply_panels<C, NoAddend>(p);
  else if (p.result.addend_is_bf16)
    multiply_panels<C, uint16_t>(p);
  else
    multiply_panels<C, float>(p);
}

void multiply(const WideBlock& p) {
  if (p.result.c_is_bf16)
    multiply_to<uint16_t>(p);
  else
    multiply_to<float>(p);
}

}  // namespace

const WideKernels kWideKernels = {.multiply = multiply};

#else

const WideKernels kWideKernels = {};

#endif

}  // namespace snug::backends::cpu::SNUG_ISA
