// Attention of one key head of a segment, with the query heads that share it, as in FlashAttention
// (Dao et al. 2022): the scores of one block at a time are in scratch, and statistics and sums are
// fp32.
//
// Queries and keys are counted within their segment. With nq queries and nk keys, causal query i
// sees keys j <= i + nk - nq, and a window w > 0 also requires j > i + nk - nq - w.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// Rows of head_dim elements inside a wider tensor, `stride` elements apart; the rows of the next
// head begin head_dim elements further.
struct HeadRows {
  const void* data;
  int64_t stride;
  // Of keys and values in 8 bits: of each row in this head; null for all others.
  const float* scales = nullptr;
};

// A number for each distance of a query from a key before it, for every head of a group: zero[x] is
// that of distance x. All distances from `reach` on share one number, as do all from -reach down.
// Sixteen consecutive numbers can be read from any index between -reach - 15 and `reach`.
template <typename T>
struct DistanceTable {
  T* zero;            // entry of distance 0 of the first head; null: there is no table
  int64_t head_step;  // distance between the tables of two heads
  int64_t reach;
};
// The number of entries on either side of zero.
constexpr int64_t distance_table_side(int64_t reach) { return reach + 15; }

// Where the keys of a segment lie. Without a table they follow one another. With one, key j is at
// position p = first + j of it: in row table[p / page_tokens] * page_tokens + p % page_tokens.
struct KeyPages {
  const int32_t* table;  // of the segment; null: there is none
  int64_t page_tokens;
  int64_t first;
};

struct AttentionForm {
  int64_t head_dim;
  int64_t group;  // the number of query heads that share the key head
  float scale;    // positive
  bool causal;
  int64_t window;
  int64_t queries, keys;  // their numbers in the segment
  float softcap;          // applied to scaled scores; 0 means none
  const float* slopes;    // ALiBi slopes of the group's heads, for a key's distance; null if none
  DistanceTable<const float> biases;  // biases by distance, multiplied by log2(e)
};

// Queries [begin, end) of a segment, in all heads of the group.
struct AttentionTile {
  AttentionForm form;
  int64_t begin, end;
  HeadRows q;     // starting at the segment's first query
  HeadRows k, v;  // starting at the segment's first key, or at the first row of all pages
  KeyPages pages;
  void* o;  // laid out like q
  int64_t o_stride;
  float* lse;          // entry of the segment's first query in the group's first head
  int64_t lse_stride;  // elements from one head to the next
  void* scratch;
  const void* sinks;  // sinks of the group's heads, in the type of q; null if none
};

// The backward pass of a whole segment.
struct AttentionSegmentGrad {
  AttentionForm form;
  HeadRows d_o, q, k, v, o;
  const float* lse;
  int64_t lse_stride;
  void *dq, *dk, *dv;
  int64_t dq_stride, dk_stride, dv_stride;
  void* scratch;
  bool in_f32;  // computes in f32 whatever the type of the operands
  // Gradients of scores are added to the entry of their distance, or to any of the entries that
  // share one number; null: not wanted.
  DistanceTable<float> d_biases;
};

// The forward pass for any number of queries, in attention_tile.cpp.
struct AttentionTileKernels {
  // Queries in a tile, and the scratch for one.
  int64_t (*queries)(int64_t group);
  int64_t (*scratch_bytes[kElements])(int64_t group, int64_t head_dim);
  // Writes o and lse; zeros for a query that sees no key. Indices are whether keys and values
  // are in 8 bits, and the element of q and o.
  void (*attend[2][kElements])(const AttentionTile& tile);
};

// The forward pass for a few queries against many keys, in attention_few.cpp. It reads keys and
// values in place and needs no scratch.
struct AttentionFewKernels {
  void (*attend[2][kElements])(const AttentionTile& tile);
};
// The largest head_dim that it supports.
inline constexpr int64_t kLargestHeadDim = 256;

// The backward pass, in attention_grad.cpp.
struct AttentionGradKernels {
  // `keys` is the largest number of keys of a segment.
  int64_t (*scratch_bytes[kElements])(int64_t group, int64_t head_dim, int64_t keys);
  void (*differentiate[kElements])(const AttentionSegmentGrad& segment);
};

}  // namespace snug::backends::cpu
