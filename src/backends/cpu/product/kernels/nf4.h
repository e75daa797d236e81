// Weights stored as NF4: dequantising them, and products with a few rows.
// program/kinds/product/nf4.h explains the operands.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

struct Nf4Weight {
  const uint8_t* codes;
  const float* values;          // values of the 16 codes
  const float* absmax;          // one per block; null when nested
  const uint8_t* nested_codes;  // this and the following fields are set only when nested
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
  const void* x;  // rows as arrange_x makes them, one after another
  int64_t rows;   // at most most_rows
  void* y;
  int64_t y_stride;  // in elements
};

struct Nf4Kernels {
  // Dequantises n elements, starting at `first`, a multiple of 64.
  void (*dequantize[kElements])(const Nf4Weight& weight, int64_t first, int64_t n, void* w);
  // Converts a row of x to the type and order that `multiply` needs.
  void (*arrange_x[kElements])(const void* x, void* arranged, int64_t in);
  int64_t (*arranged_bytes[kElements])(int64_t in);
  // The most rows of x that `multiply` takes.
  int64_t most_rows[kElements];
  void (*multiply[kElements][kElements])(const Nf4Product& product);
};

}  // namespace snug::backends::cpu
