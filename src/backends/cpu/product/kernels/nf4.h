// Weights stored as NF4: their values, and products with a few rows. What the operands mean is
// written in program/kinds/product/nf4.h.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

struct Nf4Weight {
  const uint8_t* codes;
  const float* values;          // of the 16 codes
  const float* absmax;          // of each block; null when nested
  const uint8_t* nested_codes;  // the rest: only when nested
  const float* nested_absmax;
  const float* nested_map;
  float nested_offset;
};

// y[row] for rows of x and outputs [begin, end) of the weight (out, in). Requires in % 64 == 0.
struct Nf4Product {
  Nf4Weight weight;
  int64_t in;
  int64_t begin;
  int64_t end;
  const void* x;  // rows as arrange_x makes them, one after the other
  int64_t rows;   // at most most_rows
  void* y;
  int64_t y_stride;  // elements
};

struct Nf4Kernels {
  // Values of n elements from `first` on, a multiple of 64.
  void (*dequantize[kElements])(const Nf4Weight& weight, int64_t first, int64_t n, void* w);
  // A row of x in the type and order that multiply wants.
  void (*arrange_x[kElements])(const void* x, void* arranged, int64_t in);
  int64_t (*arranged_bytes[kElements])(int64_t in);
  // Rows of x that multiply takes.
  int64_t most_rows[kElements];
  void (*multiply[kElements][kElements])(const Nf4Product& product);
};

}  // namespace snug::backends::cpu
