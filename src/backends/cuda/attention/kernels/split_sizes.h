// How attention over a long cache is split over blocks (attention_splits.h). This arithmetic needs
// no CUDA header, so that plans can be made without the toolkit.
#pragma once

#include <cstdint>

#include "backends/cuda/device/launch_shape.h"
#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

inline constexpr int kSplitWarps = 4;     // the warps in a block
inline constexpr int kSplitKeys = 4;      // keys that a lane reads at once
inline constexpr int kSplitMaxHeads = 8;  // the most heads of a group in a block
// The widest heads: a warp's lanes share a key.
inline constexpr int64_t kSplitMaxHeadDim = kLanes * kVectorElements;

// The number of lanes that share a key, with kVectorElements columns each: a power of two.
constexpr int32_t lanes_of_key(int64_t head_dim) {
  int32_t lanes = 1;
  while (lanes * kVectorElements < head_dim) lanes *= 2;
  return lanes;
}

// The number of keys that a block reads at once.
constexpr int32_t keys_in_one_go(int64_t head_dim) {
  return kSplitWarps * kLanes / lanes_of_key(head_dim) * kSplitKeys;
}

// The number of heads, of a group that shares a key head, in a block: a power of two.
constexpr int32_t heads_of_block(int64_t group) {
  int32_t heads = 1;
  while (heads < group && heads < kSplitMaxHeads) heads *= 2;
  return heads;
}

// Floats of shared memory per warp and head: the output, then its maximum and sum.
constexpr int32_t split_row_floats(int64_t head_dim) {
  return lanes_of_key(head_dim) * kVectorElements + 2;
}
constexpr int32_t split_shared_bytes(int64_t heads, int64_t head_dim) {
  return static_cast<int32_t>(kSplitWarps * heads * split_row_floats(head_dim) *
                              int64_t{sizeof(float)});
}

}  // namespace snug::backends::cuda
