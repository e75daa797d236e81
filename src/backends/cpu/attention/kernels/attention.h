// Attention of one segment's key head and the query heads that share it, in flash style (Dao et al.
// 2022): scores live in scratch a block at a time, statistics and sums are fp32.
//
// Queries and keys are counted within their segment. With nq queries and nk keys, causal query i
// sees keys j <= i + nk - nq, and a window w > 0 demands j > i + nk - nq - w.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// Rows of head_dim elements inside a wider tensor, `stride` elements apart; what a query head's
// neighbour has lies head_dim elements further.
struct HeadRows {
  const void* data;
  int64_t stride;
};

// A number for each distance of a query from a key before it, of every head of a group: of x it
// lies at zero[x]. From `reach` on, and from -reach down, all are one; sixteen neighbours can be
// read from -reach - 15 on, up to `reach`.
template <typename T>
struct DistanceTable {
  T* zero;            // of the first head; null: there is none
  int64_t head_step;  // from one head to the next
  int64_t reach;
};
// What lies on either side of zero.
constexpr int64_t distance_table_side(int64_t reach) { return reach + 15; }

struct AttentionForm {
  int64_t head_dim;
  int64_t group;  // query heads that share the key head
  float scale;    // positive
  bool causal;
  int64_t window;
  int64_t queries, keys;  // of the segment
  float softcap;          // of scaled scores; 0: none
  const float* slopes;  // of the group's heads, by which a key's distance adds to its score; null:
                        // none
  DistanceTable<const float> biases;  // what distances add to scores, in powers of two
};

// Queries [begin, end) of a segment, in all heads of the group.
struct AttentionTile {
  AttentionForm form;
  int64_t begin, end;
  HeadRows q, k, v;  // from the segment's first query and key on
  void* o;           // like q
  int64_t o_stride;
  float* lse;          // of the segment's first query in the group's first head
  int64_t lse_stride;  // from one head to the next
  void* scratch;
  const void* sinks;  // of the group's heads, in the type of q; null: none
};

// A whole segment's derivative.
struct AttentionSegmentGrad {
  AttentionForm form;
  HeadRows d_o, q, k, v, o;
  const float* lse;
  int64_t lse_stride;
  void *dq, *dk, *dv;
  int64_t dq_stride, dk_stride, dv_stride;
  void* scratch;
  bool in_f32;  // whatever the type of its operands
  // What scores of a distance get is added to it, anywhere among numbers that are one; null: not.
  DistanceTable<float> d_biases;
};

// The forward pass for any number of queries, in attention_tile.cpp.
struct AttentionTileKernels {
  // Queries of a tile, and its scratch.
  int64_t (*queries)(int64_t group);
  int64_t (*scratch_bytes[kElements])(int64_t group, int64_t head_dim);
  // o and lse; zeros for a query that sees nothing.
  void (*attend[kElements])(const AttentionTile& tile);
};

// The forward pass for a few queries against many keys, in attention_few.cpp. It reads keys where
// they are and needs no scratch.
struct AttentionFewKernels {
  void (*attend[kElements])(const AttentionTile& tile);
};
// Largest head it takes.
inline constexpr int64_t kLargestHeadDim = 256;

// The backward pass, in attention_grad.cpp.
struct AttentionGradKernels {
  // `keys`: the most that a segment may have.
  int64_t (*scratch_bytes[kElements])(int64_t group, int64_t head_dim, int64_t keys);
  void (*differentiate[kElements])(const AttentionSegmentGrad& segment);
};

}  // namespace snug::backends::cpu
