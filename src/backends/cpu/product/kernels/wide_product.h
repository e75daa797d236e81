// Pieces of a bf16 matrix product without a thin dimension, on AMX tiles: those of linears and of
// the head.
//
// b lies packed in panels of kWidePanel columns: ((k + low_k) / 2, kWidePanel, 2), pairs along k. a
// is read where it lies or from a packed copy, rows contiguous along k. A square of c is kWidePanel
// wide and its fp32 sums stay in tiles over all of k; while the tiles make a square, the vectors
// finish the one before. A k that is too long for the cache comes in steps, whose sums wait in
// memory. Elsewhere than on AMX the function is null.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

inline constexpr int64_t kWidePanel = 32;

// c (rows, columns) = alpha * sum + addend; a null addend is zero, and it may be c itself.
struct WideResult {
  void* c;
  const void* addend;
  bool c_is_bf16;
  bool addend_is_bf16;
  int64_t c_stride;
  int64_t addend_stride;
  float alpha;
};

struct WideBlock {
  const uint16_t* a;  // whole panels of rows are readable
  int64_t a_stride;   // elements
  const uint16_t* b;  // panels
  int64_t rows;
  int64_t columns;
  int64_t k;  // a multiple of kWidePanel
  WideResult result;
  // Sums of the steps of k before and for those after: (rows, columns) in whole panels, fp32.
  float* sums = nullptr;
  int64_t sums_stride = 0;
  bool is_first_step = true;
  bool is_last_step = true;  // else c is left alone
  // More of k, whose rows of a lie elsewhere; b has them after the others.
  const uint16_t* low_a = nullptr;
  int64_t low_a_stride = 0;
  int64_t low_k = 0;  // a multiple of kWidePanel; 0: none
};

struct WideKernels {
  void (*multiply)(const WideBlock& block);
};

}  // namespace snug::backends::cpu
