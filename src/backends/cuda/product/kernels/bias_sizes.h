// Sizes of the tables and sums for relative position biases of attention (distance_biases.h). This
// arithmetic needs no CUDA header.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

// The most buckets of one direction, limited since their bounds are a kernel argument.
inline constexpr int64_t kMaxBiasBuckets = 256;

// The number of distances with different biases: every distance is smaller than the number of
// tokens, and from max_distance on all are in the last bucket.
constexpr int64_t bias_reach(int64_t max_distance, int64_t q_tokens, int64_t k_tokens) {
  const int64_t tokens = q_tokens > k_tokens ? q_tokens : k_tokens;
  return max_distance < tokens ? max_distance : tokens;
}
// The number of entries in a head's table.
constexpr int64_t bias_places(int64_t reach) { return 2 * reach + 1; }

// The sums of a warp for the gradient: one per distance, with room for a warp's lanes on either
// side.
constexpr int64_t bias_side(int64_t reach) { return reach + kLanes - 1; }
constexpr int64_t bias_sums(int64_t reach) { return 2 * bias_side(reach) + 1; }
inline constexpr int kBiasWarps = 4;  // the warps in a block of the gradient
constexpr int64_t bias_shared_bytes(int64_t reach) {
  return kBiasWarps * bias_sums(reach) * int64_t{sizeof(float)};
}
// On tensor cores a block also keeps the gradients of a warp tile's scores; its rows are one float
// longer than their contents, to avoid bank conflicts.
inline constexpr int kBiasTileStride = matrix_grad_columns(kMaxBiasedMatrixDims) + 1;
inline constexpr int kBiasTileFloats = kBlockRows / kBiasWarps * kBiasTileStride;
constexpr int64_t bias_matrix_shared_bytes(int64_t reach) {
  return bias_shared_bytes(reach) + kBiasWarps * kBiasTileFloats * int64_t{sizeof(float)};
}

// The layout of the scratch, in byte offsets: the bounds of buckets, the key at distance 0 from
// each query, the tables, and for the gradient the blocks' sums by bucket.
struct BiasScratch {
  int64_t begins = 0;
  int64_t diagonals = 0;
  int64_t tables = 0;
  int64_t sums = 0;
  int64_t bytes = 0;
};
// `buckets` is the number for one direction.
constexpr BiasScratch bias_scratch(int64_t buckets, int64_t q_tokens, int64_t heads, int64_t reach,
                                   int64_t sums) {
  constexpr int64_t kBytes = sizeof(float);
  BiasScratch scratch;
  scratch.diagonals = buckets * kBytes;
  scratch.tables = scratch.diagonals + q_tokens * kBytes;
  scratch.sums = scratch.tables + heads * bias_places(reach) * kBytes;
  scratch.bytes = scratch.sums + sums * kBytes;
  return scratch;
}

// The number of blocks that each write sums for the buckets of their head. A block has as many
// queries as in the tile kernels.
constexpr int64_t bias_blocks(int64_t q_tokens, int64_t head_dim, bool tensor_cores) {
  return ceil_div(q_tokens, tensor_cores ? kBlockRows : own_rows(lane_columns(head_dim)));
}

}  // namespace snug::backends::cuda
