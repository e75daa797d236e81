// Products of some rows with a weight stored as NF4, on AMX tiles: for decoding several sequences
// at once. Values of the weight are dequantised in the first-level cache, rounded like
// dequantize_nf4, and multiplied there, so that only the weight's codes come from memory. Without
// AMX tiles the functions are null.
#pragma once

#include <cstdint>

#include "backends/cpu/product/kernels/nf4.h"

namespace snug::backends::cpu {

inline constexpr int64_t kNf4TileRows = 32;     // the most rows of x
inline constexpr int64_t kNf4TileOutputs = 32;  // outputs computed at a time
inline constexpr int64_t kNf4TileStep = 128;    // elements of each output dequantised at a time

// y[row] for rows of x and outputs [begin, end) of the weight (out, in); `begin` is a multiple of
// kNf4TileOutputs. Requires in % 64 == 0.
struct Nf4TileProduct {
  Nf4Weight weight;
  int64_t in;
  int64_t begin;
  int64_t end;
  const uint16_t* x;  // in the layout that `arrange` writes
  int64_t rows;       // at most kNf4TileRows
  void* y;
  int64_t y_stride;  // in elements
};

// Rows (rows, in) of x in bf16.
struct Nf4TileRows {
  const uint16_t* x;
  int64_t stride;  // in elements
  int64_t rows;
  int64_t in;
};

struct Nf4TileKernels {
  int64_t (*arranged_bytes)(int64_t rows, int64_t in);
  // Arranges steps [begin, end) of the rows, of kNf4TileStep elements each, in the order in which
  // weight values are produced: pairs along `in`, padded with zeros.
  void (*arrange)(const Nf4TileRows& rows, int64_t begin, int64_t end, uint16_t* arranged);
  void (*multiply[kElements])(const Nf4TileProduct& product);
};

}  // namespace snug::backends::cpu
