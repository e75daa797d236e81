// Biases of attention by relative position (distance_biases.h): what their tables and sums take.
// Arithmetic that needs no CUDA header.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

// Buckets of one direction, whose beginnings are a kernel's argument.
inline constexpr int64_t kMaxBiasBuckets = 256;

// The distances that differ: none is as large as the number of tokens, and from max_distance on all
// are in the last bucket.
constexpr int64_t bias_reach(int64_t max_distance, int64_t q_tokens, int64_t k_tokens) {
  const int64_t tokens = q_tokens > k_tokens ? q_tokens : k_tokens;
  return max_distance < tokens ? max_distance : tokens;
}
// Entries of a head's table.
constexpr int64_t bias_places(int64_t reach) { return 2 * reach + 1; }

// Sums of a warp of the gradient: of every distance, and room for the lanes of a warp on either
// side.
constexpr int64_t bias_side(int64_t reach) { return reach + kLanes - 1; }
constexpr int64_t bias_sums(int64_t reach) { return 2 * bias_side(reach) + 1; }
inline constexpr int kBiasWarps = 4;  // of a block of the gradient, plain or on tensor cores
constexpr int64_t bias_shared_bytes(int64_t reach) {
  return kBiasWarps * bias_sums(reach) * int64_t{sizeof(float)};
}
// On tensor cores a block also keeps what the scores of a warp's tile get, its rows one float
// further apart than they are long, so that they meet other banks.
inline constexpr int kBiasTileStride = kMatrixGradColumns + 1;
inline constexpr int kBiasTileFloats = kBlockRows / kBiasWarps * kBiasTileStride;
constexpr int64_t bias_matrix_shared_bytes(int64_t reach) {
  return bias_shared_bytes(reach) + kBiasWarps * kBiasTileFloats * int64_t{sizeof(float)};
}

// Scratch, in bytes from its beginning: where buckets begin, the key at no distance from each
// query, the tables, and in the gradient the sums of blocks by bucket.
struct BiasScratch {
  int64_t begins = 0;
  int64_t diagonals = 0;
  int64_t tables = 0;
  int64_t sums = 0;
  int64_t bytes = 0;
};
// `buckets`: of one direction.
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

// What a block of queries leaves: the sums of its head's buckets. As many queries as the tile
// kernels have.
constexpr int64_t bias_blocks(int64_t q_tokens, int64_t head_dim, bool tensor_cores) {
  return ceil_div(q_tokens, tensor_cores ? kBlockRows : own_rows(lane_columns(head_dim)));
}

}  // namespace snug::backends::cuda
