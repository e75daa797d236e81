// The shared memory of a block of few_rows_matrix.h. This arithmetic needs no CUDA header.
//
// A multiprocessor has one block, which copies weights to a ring of stages ahead of its products.
// Where memory allows it, the ring is deep and still two blocks fit on a multiprocessor, so that
// the next kernel fills its ring while this one ends.
#pragma once

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/card.h"

namespace snug::backends::cuda {

inline constexpr int kFewRowsWarps = 8;
// The most rows of a product, and the rows that kernels are made for: up to kFewRows, 8 and 16.
inline constexpr int kMostFewRows = 16;
// Of a weight stored as codes a product of up to so many reads it once for each 16 rows: four times
// 0.53 bytes for each element, where making its values first writes and reads two.
inline constexpr int kMostFewCodeRows = 64;
constexpr int few_rows_room(int64_t rows) {
  return rows <= kFewRows ? kFewRows : rows <= 8 ? 8 : 16;
}

// A stage has 16 bytes of two outputs for each lane; of a weight stored as codes also a word for
// its scale, or two where scales are nested.
inline constexpr int32_t kFewRowsStageWords = kLanes * 8;
inline constexpr int32_t kFewRowsScaleWords = kLanes * 2;
constexpr int32_t few_rows_stage_bytes(bool has_codes) {
  return (kFewRowsStageWords + (has_codes ? kFewRowsScaleWords : 0)) * int32_t{sizeof(uint32_t)};
}

// The stages of a warp. Deep rings have 64 or 40 KiB. An H200 reads 32 bytes in a nanosecond for
// each multiprocessor, so 22 KiB are under way if a read takes 700 ns. A shallow ring, of 24 or 20
// KiB, is for GPUs with less memory to share, which also read less: 18 bytes on an A100.
constexpr int few_rows_stages(bool has_codes, bool is_deep) {
  if (has_codes) return is_deep ? 4 : 2;
  return is_deep ? 8 : 3;
}
constexpr int64_t few_rows_ring_bytes(bool has_codes, bool is_deep) {
  return int64_t{kFewRowsWarps} * few_rows_stages(has_codes, is_deep) *
         few_rows_stage_bytes(has_codes);
}

// The sums of warps that do not fit into what the kernel declares.
constexpr int64_t few_rows_sum_bytes(int64_t rows) { return rows <= 8 ? 0 : 16 << 10; }

// Whether a block keeps x next to a ring, on a GPU whose blocks can have `card_bytes`. Of more than
// kFewRows it keeps as much as it can, since it would read x again for each tile.
constexpr bool keeps_few_rows_by_ring(int64_t rows, int64_t columns, bool has_codes,
                                      int64_t card_bytes) {
  const int64_t left = card_bytes - few_rows_ring_bytes(has_codes, false);
  if (rows <= kFewRows) return keeps_few_rows(rows, columns, has_codes, left);
  return few_rows_shared_bytes(rows, columns) + kFewRowsDeclaredBytes + few_rows_sum_bytes(rows) +
             (has_codes ? kFewRowsTableBytes : 0) <=
         left;
}

// How blocks of a launch use their shared memory.
struct FewRowsBlock {
  bool keeps_x = false;
  bool is_deep = false;
  int64_t dynamic_bytes = 0;  // the ring, then the table of pairs, sums, and x
};
constexpr FewRowsBlock few_rows_block(int64_t rows, int64_t columns, bool has_codes,
                                      const Card& card) {
  FewRowsBlock block;
  block.keeps_x = keeps_few_rows_by_ring(rows, columns, has_codes, card.shared_bytes);
  const int64_t other = (has_codes ? kFewRowsTableBytes : 0) + few_rows_sum_bytes(rows) +
                        (block.keeps_x ? few_rows_shared_bytes(rows, columns) : 0);
  const int64_t deep_bytes = few_rows_ring_bytes(has_codes, true) + other;
  block.is_deep =
      rows <= kFewRows && card.blocks_at_a_time(deep_bytes + kFewRowsDeclaredBytes) >= 2;
  block.dynamic_bytes = few_rows_ring_bytes(has_codes, block.is_deep) + other;
  return block;
}

}  // namespace snug::backends::cuda
