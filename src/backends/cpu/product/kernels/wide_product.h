// Parts of a bf16 matrix product without a thin dimension, on AMX tiles: for linears and the head.
//
// b is packed in panels of kWidePanel columns: ((k + low_k) / 2, kWidePanel, 2), pairs along k. a
// is read in place or from a packed copy, with rows contiguous along k. A square of c is kWidePanel
// wide, and its fp32 sums stay in tiles over all of k; while the tiles compute a square, the
// vectors finish the one before. If k is too long for the cache it is cut into steps, with sums in
// memory in between. Without AMX the function is null.
#pragma once

#include <cstdint>

namespace snug::backends::cpu {

inline constexpr int64_t kWidePanel = 32;

// c (rows, columns) = alpha * sum + addend. A null addend is zero; the addend may be c itself.
struct WideResult {
  void* c;
  const void* addend;
  bool c_is_bf16;
  bool addend_is_bf16;
  int64_t c_stride;
  int64_t addend_stride;
  float alpha;
  bool past_caches = false;  // of fp32 without an addend: c is not wanted in the caches
};

struct WideBlock {
  const uint16_t* a;  // readable up to whole panels of rows
  int64_t a_stride;   // in elements
  const uint16_t* b;  // packed in panels
  int64_t rows;
  int64_t columns;
  int64_t k;  // a multiple of kWidePanel
  WideResult result;
  // The sums of earlier steps of k, kept for later ones: (rows, columns) in whole panels, fp32.
  float* sums = nullptr;
  int64_t sums_stride = 0;
  bool is_first_step = true;
  bool is_last_step = true;  // false: c is not written
  // A continuation of k with separate rows of a; b has it after the others.
  const uint16_t* low_a = nullptr;
  int64_t low_a_stride = 0;
  int64_t low_k = 0;  // a multiple of kWidePanel; 0: none
};

struct WideKernels {
  void (*multiply)(const WideBlock& block);
};

}  // namespace snug::backends::cpu
