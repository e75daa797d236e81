// Pieces of a bf16 matrix product of which one dimension is a few dozen: the products of low-rank
// adapters. They are bound by the memory that the wide matrices stream through, so the thin factor
// is packed once and the wide ones are read once, where they lie.
//
// Everything is padded with zeros to kThinStep along every dimension; packed factors are laid out
// as in backends/cpu/product/kernels/block_product.h. Sums are fp32. Only where there are AMX
// tiles; elsewhere the functions are null, as vdpbf16ps makes it no faster than the library is.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

inline constexpr int64_t kThinStep = 32;
// Rows of a result that is written a few rows at a time.
inline constexpr int64_t kThinRows = 16;
// Columns of it that are made at a time, and of a wide factor that are packed at a time. Larger
// blocks measure slower: the tiles then wait for the vectors and the vectors for the tiles.
inline constexpr int64_t kThinSpread = 128;
inline constexpr int64_t kThinBlock = 64;
// The gap between lines of blocks, in units of four bytes: strides that are powers of two would
// keep a tile's lines in a few sets of the first-level cache.
inline constexpr int64_t kThinGap = 16;
// Rows of a wide factor that are multiplied together where the result has a few columns.
inline constexpr int64_t kNarrowRows = 32;
inline constexpr int64_t kThinSpreadBytes = 2 * kThinRows * (kThinSpread + kThinGap) * 4;
inline constexpr int64_t kThinBlockBytes = 2 * kThinStep * (kThinBlock + kThinGap) * 2;

// A bf16 matrix in memory; one of the strides, in elements, is 1.
struct ThinFactor {
  const uint16_t* data;
  int64_t row_stride;
  int64_t column_stride;
};

// c = alpha * sum + addend; a null addend is zero, and it may be c itself. One of c's strides is 1,
// and the addend's order is c's.
struct ThinResult {
  void* c;
  const void* addend;
  bool c_is_bf16;
  bool addend_is_bf16;
  int64_t c_stride;  // of a line: a row, or when transposed a column
  int64_t addend_stride;
  bool transposed;  // lines are columns
  float alpha;
};

// Some rows of c (rows, n) = a (rows, k) b (k, n).
struct ThinRows {
  ThinFactor a;
  int64_t rows;       // at most kThinRows
  int64_t next_rows;  // at most kThinRows, made next: their memory is asked for
  int64_t k;
  int64_t n;
  const uint16_t* b;  // packed by pack_pairs: (k / 2, n, 2)
  uint16_t* packed;   // (kThinStep, k filled up) elements
  float* sums;        // kThinSpreadBytes
  ThinResult result;  // of its first row
};

// Some rows of c (rows, n) = a (rows, k) b (k, n), where a is wide and lies in rows.
struct NarrowRows {
  const uint16_t* a;
  int64_t a_stride;
  int64_t rows;  // at most kNarrowRows
  int64_t k;
  int64_t n;          // at most kThinStep
  const uint16_t* b;  // packed by pack_pairs: (k / 2, kThinStep, 2)
  uint16_t* packed;   // (kNarrowRows, k filled up + kThinStep) elements
  ThinResult result;  // of its first row
};

// Sums (kThinRows, columns) of a thin a (kThinRows, k) and a wide b (k, columns).
struct ThinSums {
  const uint16_t* a;  // packed by pack_rows: kThinRows rows
  int64_t a_stride;
  int64_t k;
  int64_t columns;
  ThinFactor b;
  uint16_t* packed;  // kThinBlockBytes
  float* sums;
  int64_t sums_stride;
};

struct ThinKernels {
  // (k, columns) into pairs along k: (k / 2, stride, 2).
  void (*pack_pairs)(const ThinFactor& from, int64_t k, int64_t columns, uint16_t* to,
                     int64_t stride);
  // (rows, columns) into rows `stride` elements apart.
  void (*pack_rows)(const ThinFactor& from, int64_t rows, int64_t columns, uint16_t* to,
                    int64_t stride);
  // k thin, n wide.
  void (*spread)(const ThinRows& product);
  // n thin, k wide.
  void (*narrow)(const NarrowRows& product);
  void (*sum)(const ThinSums& product);
  // Adds `parts` sums (rows, columns), `part_stride` floats apart, in their order, to the first,
  // and makes the result of them.
  void (*finish)(float* sums, int64_t sums_stride, const int64_t (&rows_columns_parts)[3],
                 int64_t part_stride, const ThinResult& result);
};

}  // namespace snug::backends::cpu
