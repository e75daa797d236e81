// Launches for reductions: rounding elements to the type that is sent, and adding up what all ranks
// sent, in f32 in rank order. Asynchronous on the stream; elements are aligned for their type.
// Entries have positive counts and take rank_sum_launches() launches (rank_sum_sizes.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// to[i] = from[i], rounded to nearest where `to` is narrower. The two must not overlap.
struct Rounding {
  DeviceRows from, to;
  int64_t count = 0;
};
void round_elements(std::span<const Rounding> roundings, cudaStream_t stream);

// The pieces that the ranks of a group sent to this one, all with the same order of elements.
struct RankPieces {
  DeviceRows received;  // rank r's piece begins at element r * stride; the own piece is not read
  DeviceRows own;       // this rank's own piece, in the same type
  int32_t ranks = 1;
  int32_t own_rank = 0;
  bool rounds = false;  // rounds f32 elements to bf16 before they are added
};

// to[i] = the sum over the ranks of element position + i of their pieces, plus the previous to[i]
// if it adds; 0 from element `valid` on. `to` may be the own piece itself.
struct RankSum {
  DeviceRows to;
  int64_t position = 0;
  int64_t count = 0;
  int64_t valid = 0;
  bool adds = false;
};
void sum_pieces(const RankPieces& pieces, std::span<const RankSum> sums, cudaStream_t stream);

// Loads the kernels for rounding and for sums (kernel_loading.h).
void load_rank_sums();

}  // namespace snug::backends::cuda
