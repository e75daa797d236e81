#include "backends/cpu/product/kernels/thin_product.h"

#include "backends/cpu/kernels/masked_lanes.h"
#include "backends/cpu/product/kernels/block_packing.h"

namespace snug::backends::cpu::SNUG_ISA {

extern const ThinKernels kThinKernels;

#if defined(__AMX_BF16__)

namespace {

constexpr int64_t kSpreadStride = kThinSpread + kThinGap;
constexpr int64_t kBlockStride = kThinBlock + kThinGap;

// Multiplies kThinRows rows by kTiles times sixteen columns: tiles 0 to 3 hold the sums.
template <int kTiles>
SNUG_INLINE void multiply_columns(const uint16_t* a, int64_t depth, const uint16_t* b,
                                  int64_t width, float* sums) {
  constexpr int64_t kLine = kSpreadStride * 4;
  // gcc's tile loads do not declare that they read memory.
  __asm__ volatile("" ::: "memory");
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTiles > 2) _tile_zero(2);
  if constexpr (kTiles > 2) _tile_zero(3);
  for (int64_t k = 0; k < depth; k += kThinStep) {
    _tile_loadd(4, a + k, depth * 2);
    _tile_loadd(5, b, width * 4);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, b + 32, width * 4);
    _tile_dpbf16ps(1, 4, 6);
    if constexpr (kTiles > 2) {
      _tile_loadd(7, b + 64, width * 4);
      _tile_dpbf16ps(2, 4, 7);
      _tile_loadd(5, b + 96, width * 4);
      _tile_dpbf16ps(3, 4, 5);
    }
    b += kThinStep * width;
  }
  _tile_stored(0, sums, kLine);
  _tile_stored(1, sums + 16, kLine);
  if constexpr (kTiles > 2) _tile_stored(2, sums + 32, kLine);
  if constexpr (kTiles > 2) _tile_stored(3, sums + 48, kLine);
}

// A square of up to kThinStep contiguous lines, padded with zeros.
struct alignas(64) Square {
  uint16_t values[kThinStep * kThinStep];
};

void copy_square(const uint16_t* from, int64_t stride, int64_t lines, int64_t length,
                 Square& square) {
  const __mmask32 present = length >= kThinStep ? ~__mmask32{0} : (__mmask32{1} << length) - 1;
  for (int64_t i = 0; i < kThinStep; ++i) {
    const __m512i line =
        i < lines ? _mm512_maskz_loadu_epi16(present, from + i * stride) : _mm512_setzero_si512();
    _mm512_store_si512(square.values + i * kThinStep, line);
  }
}

// Prefetches the lines that are packed two squares later. Lines of a matrix are a whole row apart,
// which the hardware prefetcher does not follow.
SNUG_INLINE void ask_for(const uint16_t* ahead, int64_t stride) {
  for (int64_t i = 0; i < kThinStep; ++i) __builtin_prefetch(ahead + i * stride);
}

// Packs a square of pairs from lines along k. Units of four bytes are copied where their alignment
// allows it.
void pack_lines(const uint16_t* from, int64_t stride, int64_t lines, int64_t length,
                RowBlock<uint16_t> out) {
  if (lines >= kThinStep && length >= kThinStep && stride % 2 == 0) {
    transpose_units(RowBlock<const uint16_t>{from, stride / 2}, kThinStep, kThinStep / 2, out);
    return;
  }
  Square square;
  copy_square(from, stride, lines, length, square);
  transpose_units(RowBlock<const uint16_t>{square.values, kThinStep / 2}, kThinStep, kThinStep / 2,
                  out);
}

// Packs a square of pairs from lines across k.
void pair_lines(const uint16_t* from, int64_t stride, int64_t lines, int64_t length,
                RowBlock<uint16_t> out) {
  if (lines >= kThinStep && length >= kThinStep) {
    pair_rows(RowBlock<const uint16_t>{from, stride}, kThinStep, kThinStep, out);
    return;
  }
  Square square;
  copy_square(from, stride, lines, length, square);
  pair_rows(RowBlock<const uint16_t>{square.values, kThinStep}, kThinStep, kThinStep, out);
}

void pack_pairs(const ThinFactor& from, int64_t k, int64_t columns, uint16_t* to, int64_t stride) {
  for (int64_t p = 0; p < k; p += kThinStep)
    for (int64_t j = 0; j < columns; j += kThinStep) {
      const uint16_t* source = from.data + p * from.row_stride + j * from.column_stride;
      const RowBlock<uint16_t> out = {to + (p / 2 * stride + j) * 2, stride};
      if (from.column_stride == 1) {
        ask_for(source + kThinStep * from.row_stride, from.row_stride);
        pair_lines(source, from.row_stride, k - p, columns - j, out);
      } else {
        ask_for(source + 2 * kThinStep, from.column_stride);
        pack_lines(source, from.column_stride, columns - j, k - p, out);
      }
    }
}

void pack_rows(const ThinFactor& from, int64_t rows, int64_t columns, uint16_t* to,
               int64_t stride) {
  Square square;
  for (int64_t i = 0; i < rows; i += kThinStep)
    for (int64_t j = 0; j < columns; j += kThinStep) {
      const uint16_t* source = from.data + i * from.row_stride + j * from.column_stride;
      uint16_t* out = to + i * stride + j;
      if (from.column_stride == 1) {
        copy_square(source, from.row_stride, rows - i, columns - j, square);
        for (int64_t row = 0; row < kThinStep; ++row)
          copy_elements(square.values + row * kThinStep, kThinStep, out + row * stride);
      } else {
        ask_for(source + 2 * kThinStep, from.column_stride);
        pair_lines(source, from.column_stride, columns - j, rows - i,
                   RowBlock<uint16_t>{square.values, kThinStep});
        transpose_units(RowBlock<const uint16_t>{square.values, kThinStep}, kThinStep / 2,
                        kThinStep, RowBlock<uint16_t>{out, stride / 2});
      }
    }
}

template <typename C, typename Addend>
void finish_line(const float* sums, int64_t n, float alpha, C* c, const Addend* addend) {
  const Float16Lanes factor = splat(alpha);
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    store(c + j, multiply_add(load(sums + j), factor, load(addend + j)));
  if (j == n) return;
  const __mmask16 rest = lanes_of(n - j);
  store_some(c + j, multiply_add(load_some(sums + j, rest), factor, load_some(addend + j, rest)),
             rest);
}

template <typename C>
void finish_line(const float* sums, int64_t n, float alpha, C* c) {
  for (int64_t j = 0; j < n; j += kLanes) {
    const __mmask16 lanes = lanes_of(n - j);
    store_some(c + j, load_some(sums + j, lanes) * alpha, lanes);
  }
}

template <typename C>
void finish_lines(const float* sums, int64_t sums_stride, int64_t lines, int64_t n,
                  const ThinResult& to, int64_t offset) {
  for (int64_t i = 0; i < lines; ++i) {
    C* c = static_cast<C*>(to.c) + i * to.c_stride + offset;
    const int64_t at = i * to.addend_stride + offset;
    const float* line = sums + i * sums_stride;
    if (to.addend == nullptr)
      finish_line(line, n, to.alpha, c);
    else if (to.addend_is_bf16)
      finish_line(line, n, to.alpha, c, static_cast<const uint16_t*>(to.addend) + at);
    else
      finish_line(line, n, to.alpha, c, static_cast<const float*>(to.addend) + at);
  }
}

// Writes lines of the result, each starting at element `offset`.
void finish_lines_of_type(const float* sums, int64_t sums_stride, int64_t lines, int64_t n,
                          const ThinResult& to, int64_t offset) {
  if (to.c_is_bf16)
    finish_lines<uint16_t>(sums, sums_stride, lines, n, to, offset);
  else
    finish_lines<float>(sums, sums_stride, lines, n, to, offset);
}

// The result, starting at line `line`.
ThinResult from_line(ThinResult to, int64_t line) {
  to.c = static_cast<char*>(to.c) + line * to.c_stride * (to.c_is_bf16 ? 2 : 4);
  if (to.addend != nullptr)
    to.addend =
        static_cast<const char*>(to.addend) + line * to.addend_stride * (to.addend_is_bf16 ? 2 : 4);
  return to;
}

// Writes sums (rows, columns) to columns [column, ...) of the result; sums are readable up to whole
// steps.
void finish_sums(const float* sums, int64_t sums_stride, int64_t rows, int64_t columns,
                 const ThinResult& to, int64_t column) {
  if (!to.transposed) return finish_lines_of_type(sums, sums_stride, rows, columns, to, column);
  alignas(64) float square[kLanes * kLanes];
  for (int64_t j = 0; j < columns; j += kLanes) {
    const ThinResult lines = from_line(to, column + j);
    for (int64_t i = 0; i < rows; i += kLanes) {
      transpose_square(reinterpret_cast<const char*>(sums + i * sums_stride + j), sums_stride * 4,
                       reinterpret_cast<char*>(square), kLanes * 4);
      finish_lines_of_type(square, kLanes, smaller_of(kLanes, columns - j),
                           smaller_of(kLanes, rows - i), lines, i);
    }
  }
}

// Stores to cache lines that are not cached would stall the tiles, so a block of the result is
// prefetched while the one before it is computed.
SNUG_INLINE void prefetch_block(const ThinResult& to, int64_t row, int64_t rows, int64_t column,
                                int64_t columns) {
  const int64_t size = to.c_is_bf16 ? 2 : 4;
  for (int64_t i = row; i < row + rows; ++i) {
    const char* line = static_cast<const char*>(to.c) + (i * to.c_stride + column) * size;
    for (int64_t byte = 0; byte < columns * size; byte += 64) __builtin_prefetch(line + byte, 1);
  }
}

// Processes pieces of columns with two buffers for sums, so that vectors finish one piece while the
// tiles compute the next.
void spread(const ThinRows& p) {
  const TilesInUse tiles;
  const int64_t depth = round_up(p.k, kThinStep);
  const int64_t width = round_up(p.n, kThinStep);
  pack_rows(p.a, p.rows, p.k, p.packed, depth);
  float* sums = p.sums;
  float* next = p.sums + kThinRows * kSpreadStride;
  for (int64_t j = 0; j < p.n; j += kThinSpread) {
    const int64_t columns = smaller_of(kThinSpread, p.n - j);
    const int64_t next_column = j + columns;
    if (next_column < p.n)
      prefetch_block(p.result, 0, p.rows, next_column, smaller_of(kThinSpread, p.n - next_column));
    else
      prefetch_block(p.result, p.rows, p.next_rows, 0, smaller_of(kThinSpread, p.n));
    const int64_t end = round_up(next_column, kThinStep);
    int64_t i = j;
    for (; i + 64 <= end; i += 64)
      multiply_columns<4>(p.packed, depth, p.b + i * 2, width, sums + i - j);
    if (i < end) multiply_columns<2>(p.packed, depth, p.b + i * 2, width, sums + i - j);
    finish_sums(sums, kSpreadStride, p.rows, columns, p.result, j);
    float* const used = sums;
    sums = next;
    next = used;
  }
}

// Computes kTiles times sixteen columns of sums (kNarrowRows, kThinStep).
template <int kTiles>
SNUG_INLINE void multiply_narrow(const NarrowRows& p, const uint16_t* a, int64_t a_stride,
                                 float* sums) {
  // gcc's tile loads do not declare that they read memory.
  __asm__ volatile("" ::: "memory");
  const uint16_t* b = p.b;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTiles > 1) _tile_zero(2);
  if constexpr (kTiles > 1) _tile_zero(3);
  for (int64_t k = 0; k < p.k; k += kThinStep) {
    _tile_loadd(6, b, kThinStep * 4);
    _tile_loadd(4, a + k, a_stride * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, a + kThinRows * a_stride + k, a_stride * 2);
    _tile_dpbf16ps(1, 5, 6);
    if constexpr (kTiles > 1) {
      _tile_loadd(7, b + kThinStep, kThinStep * 4);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    b += kThinStep * kThinStep;
  }
  constexpr int64_t kLine = kThinStep * 4;
  _tile_stored(0, sums, kLine);
  _tile_stored(1, sums + kThinRows * kThinStep, kLine);
  if constexpr (kTiles > 1) _tile_stored(2, sums + kLanes, kLine);
  if constexpr (kTiles > 1) _tile_stored(3, sums + kThinRows * kThinStep + kLanes, kLine);
}

void narrow(const NarrowRows& p) {
  const TilesInUse tiles;
  alignas(64) float sums[kNarrowRows * kThinStep];
  const uint16_t* a = p.a;
  int64_t a_stride = p.a_stride;
  if (p.rows < kNarrowRows || p.k % kThinStep != 0) {
    a = p.packed;
    a_stride = round_up(p.k, kThinStep) + kThinStep;
    pack_rows({p.a, p.a_stride, 1}, p.rows, p.k, p.packed, a_stride);
  }
  if (p.n > kLanes)
    multiply_narrow<2>(p, a, a_stride, sums);
  else
    multiply_narrow<1>(p, a, a_stride, sums);
  finish_sums(sums, kThinStep, p.rows, p.n, p.result, 0);
}

// The position at which a block of b begins.
struct BlockPlace {
  int64_t k;
  int64_t column;
};

SNUG_INLINE BlockPlace after(const ThinSums& p, BlockPlace at) {
  at.k += kThinStep;
  return at.k < p.k ? at : BlockPlace{0, at.column + kThinBlock};
}

SNUG_INLINE void prefetch_block(const ThinSums& p, BlockPlace at) {
  if (at.column >= p.columns) return;
  const int64_t end = smaller_of(p.k, at.k + kThinStep);
  for (int64_t row = at.k; row < end; ++row) {
    const uint16_t* line = p.b.data + row * p.b.row_stride + at.column;
    __builtin_prefetch(line);
    __builtin_prefetch(line + kThinBlock / 2);
  }
}

SNUG_INLINE void pack_block(const ThinSums& p, BlockPlace at, uint16_t* packed) {
  if (at.column >= p.columns) return;
  const uint16_t* from = p.b.data + at.k * p.b.row_stride + at.column;
  pack_pairs({from, p.b.row_stride, p.b.column_stride}, smaller_of(kThinStep, p.k - at.k),
             smaller_of(kThinBlock, p.columns - at.column), packed, kBlockStride);
}

// Sums kTiles times sixteen columns, of which the first block is already packed. The next block is
// packed before tiles load this one, so that they do not wait for its stores, and the one after
// that is prefetched.
template <int kTiles>
SNUG_INLINE void sum_columns(const ThinSums& p, int64_t column, uint16_t* (&packed)[2]) {
  constexpr int64_t kBlockLine = kBlockStride * 4;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kTiles > 2) _tile_zero(2);
  if constexpr (kTiles > 2) _tile_zero(3);
  for (int64_t k = 0; k < p.k; k += kThinStep) {
    const BlockPlace next = after(p, {k, column});
    prefetch_block(p, after(p, next));
    pack_block(p, next, packed[1]);
    uint16_t* const b = packed[0];
    // gcc's tile loads do not declare that they read memory.
    __asm__ volatile("" ::: "memory");
    _tile_loadd(4, p.a + k, p.a_stride * 2);
    _tile_loadd(5, b, kBlockLine);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, b + 32, kBlockLine);
    _tile_dpbf16ps(1, 4, 6);
    if constexpr (kTiles > 2) {
      _tile_loadd(7, b + 64, kBlockLine);
      _tile_dpbf16ps(2, 4, 7);
      _tile_loadd(5, b + 96, kBlockLine);
      _tile_dpbf16ps(3, 4, 5);
    }
    packed[0] = packed[1];
    packed[1] = b;
  }
  float* sums = p.sums + column;
  _tile_stored(0, sums, p.sums_stride * 4);
  _tile_stored(1, sums + 16, p.sums_stride * 4);
  if constexpr (kTiles > 2) _tile_stored(2, sums + 32, p.sums_stride * 4);
  if constexpr (kTiles > 2) _tile_stored(3, sums + 48, p.sums_stride * 4);
}

// Processes one block of columns after another, whose sums stay in tiles over all of k.
void sum(const ThinSums& p) {
  const TilesInUse tiles;
  uint16_t* packed[2] = {p.packed, p.packed + kThinStep * kBlockStride};
  pack_block(p, {0, 0}, packed[0]);
  for (int64_t column = 0; column < p.columns; column += kThinBlock)
    if (p.columns - column > kThinBlock / 2)
      sum_columns<4>(p, column, packed);
    else
      sum_columns<2>(p, column, packed);
}

void finish(float* sums, int64_t sums_stride, const int64_t (&rows_columns_parts)[3],
            int64_t part_stride, const ThinResult& result) {
  const auto [rows, columns, parts] = rows_columns_parts;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; j += kLanes) {
      float* at = sums + i * sums_stride + j;
      Float16Lanes total = load(at);
      for (int64_t part = 1; part < parts; ++part) total += load(at + part * part_stride);
      store(at, total);
    }
  finish_sums(sums, sums_stride, rows, columns, result, 0);
}

}  // namespace

const ThinKernels kThinKernels = {
    .pack_pairs = pack_pairs,
    .pack_rows = pack_rows,
    .spread = spread,
    .narrow = narrow,
    .sum = sum,
    .finish = finish,
};

#else

const ThinKernels kThinKernels = {};

#endif

}  // namespace snug::backends::cpu::SNUG_ISA
