// Parts of a bf16 matrix product with one dimension of a few dozen: the products of low-rank
// adapters. The memory bandwidth for the wide matrices bounds them, so the thin factor is packed
// once and the wide ones are read once, in place.
//
// Everything is padded with zeros to kThinStep along every dimension; packed factors have the
// layout of backends/cpu/product/kernels/block_product.h. Sums are fp32. Without AMX tiles the
// functions are null, since with vdpbf16ps this is not faster than the library.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

inline constexpr int64_t kThinStep = 32;
// Rows of a result that is written a few rows at a time.
inline constexpr int64_t kThinRows = 16;
// Columns of the result that are computed at a time, and columns of a wide factor that are packed
// at a time. Larger blocks measure slower: then tiles and vectors wait for each other.
inline constexpr int64_t kThinSpread = 128;
inline constexpr int64_t kThinBlock = 64;
// The gap between lines of blocks, in units of four bytes: with strides that are powers of two, a
// tile's lines would fall into a few sets of the first-level cache.
inline constexpr int64_t kThinGap = 16;
// Rows of a wide factor that are multiplied at once where the result has few columns.
inline constexpr int64_t kNarrowRows = 32;
inline constexpr int64_t kThinSpreadBytes = 2 * kThinRows * (kThinSpread + kThinGap) * 4;
inline constexpr int64_t kThinBlockBytes = 2 * kThinStep * (kThinBlock + kThinGap) * 2;

// A bf16 matrix in memory; one of the strides, in elements, is 1.
struct ThinFactor {
  const uint16_t* data;
  int64_t row_stride;
  int64_t column_stride;
};

// c = alpha * sum + addend. A null addend is zero; the addend may be c itself. One of c's strides
// is 1, and the addend has the same order.
struct ThinResult {
  void* c;
  const void* addend;
  bool c_is_bf16;
  bool addend_is_bf16;
  int64_t c_stride;  // elements from one line to the next: a row or, if transposed, a column
  int64_t addend_stride;
  bool transposed;  // lines are columns
  float alpha;
};

// Some rows of c (rows, n) = a (rows, k) b (k, n) with a thin k.
struct ThinRows {
  ThinFactor a;
  int64_t rows;       // at most kThinRows
  int64_t next_rows;  // rows that follow, at most kThinRows: their memory is prefetched
  int64_t k;
  int64_t n;
  const uint16_t* b;  // packed by pack_pairs: (k / 2, n, 2)
  uint16_t* packed;   // (kThinStep, padded k) elements
  float* sums;        // kThinSpreadBytes of scratch
  ThinResult result;  // points to the first of these rows
};

// Some rows of c (rows, n) = a (rows, k) b (k, n), where a is wide and stored in rows.
struct NarrowRows {
  const uint16_t* a;
  int64_t a_stride;
  int64_t rows;  // at most kNarrowRows
  int64_t k;
  int64_t n;          // at most kThinStep
  const uint16_t* b;  // packed by pack_pairs: (k / 2, kThinStep, 2)
  uint16_t* packed;   // (kNarrowRows, padded k + kThinStep) elements
  ThinResult result;  // points to the first of these rows
};

// Sums (kThinRows, columns) of a thin a (kThinRows, k) and a wide b (k, columns).
struct ThinSums {
  const uint16_t* a;  // packed by pack_rows: kThinRows rows
  int64_t a_stride;
  int64_t k;
  int64_t columns;
  ThinFactor b;
  uint16_t* packed;  // kThinBlockBytes of scratch
  float* sums;
  int64_t sums_stride;
};

struct ThinKernels {
  // Packs (k, columns) into pairs along k: (k / 2, stride, 2).
  void (*pack_pairs)(const ThinFactor& from, int64_t k, int64_t columns, uint16_t* to,
                     int64_t stride);
  // Packs (rows, columns) into rows `stride` elements apart.
  void (*pack_rows)(const ThinFactor& from, int64_t rows, int64_t columns, uint16_t* to,
                    int64_t stride);
  // For a thin k and a wide n.
  void (*spread)(const ThinRows& product);
  // For a thin n and a wide k.
  void (*narrow)(const NarrowRows& product);
  void (*sum)(const ThinSums& product);
  // Adds `parts` partial sums (rows, columns), `part_stride` floats apart, in order to the first
  // one, and writes the result.
  void (*finish)(float* sums, int64_t sums_stride, const int64_t (&rows_columns_parts)[3],
                 int64_t part_stride, const ThinResult& result);
};

}  // namespace snug::backends::cpu
