// Products of some rows with a weight stored as NF4, on AMX tiles: for decoding several sequences
// side by side. Values of the weight are made in a first-level cache, rounded as dequantize_nf4
// rounds them, and multiplied there, so that of the weight only its codes come from memory. Only
// where there are AMX tiles; elsewhere the functions are null.
#pragma once

#include <cstdint>

#include "backends/cpu/product/kernels/nf4.h"

namespace snug::backends::cpu {

inline constexpr int64_t kNf4TileRows = 32;     // most rows of x
inline constexpr int64_t kNf4TileOutputs = 32;  // made at a time
inline constexpr int64_t kNf4TileStep = 128;    // elements of an output that are made at a time

// y[row] for rows of x and outputs [begin, end) of the weight (out, in); `begin` is a multiple of
// kNf4TileOutputs. Requires in % 64 == 0.
struct Nf4TileProduct {
  Nf4Weight weight;
  int64_t in;
  int64_t begin;
  int64_t end;
  const uint16_t* x;  // as arrange makes it
  int64_t rows;       // at most kNf4TileRows
  void* y;
  int64_t y_stride;  // elements
};

// Rows (rows, in) of x in bf16.
struct Nf4TileRows {
  const uint16_t* x;
  int64_t stride;  // elements
  int64_t rows;
  int64_t in;
};

struct Nf4TileKernels {
  int64_t (*arranged_bytes)(int64_t rows, int64_t in);
  // Steps [begin, end) of the rows, of kNf4TileStep elements each, in the order in which values
  // are made: pairs along `in`, filled up with zeros.
  void (*arrange)(const Nf4TileRows& rows, int64_t begin, int64_t end, uint16_t* arranged);
  void (*multiply[kElements])(const Nf4TileProduct& product);
};

}  // namespace snug::backends::cpu
