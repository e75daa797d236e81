// Launches of what ranks do with elements that they sum: rounding them to the type in which they
// travel, and adding up what all ranks sent, in f32 in the order of the ranks. Asynchronous on the
// stream; elements lie at addresses that their type is aligned to. Entries have positive
// counts and take rank_sum_launches() (rank_sum_sizes.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// to[i] = from[i], rounded to nearest where `to` is narrower. They share no byte.
struct Rounding {
  DeviceRows from, to;
  int64_t count = 0;
};
void round_elements(std::span<const Rounding> roundings, cudaStream_t stream);

// What the ranks of a group sent to this one: a piece of each, in one order of elements.
struct RankPieces {
  DeviceRows received;  // rank r's piece begins at element r * stride; the own one is not looked at
  DeviceRows own;       // of the same type
  int32_t ranks = 1;
  int32_t own_rank = 0;
  bool rounds = false;  // f32 elements to bf16 before they are added
};

// to[i] = the sum over the ranks of element position + i of their pieces, and `to[i]` before where
// it adds; 0 from element `valid` on. `to` may be the own piece, element by element.
struct RankSum {
  DeviceRows to;
  int64_t position = 0;
  int64_t count = 0;
  int64_t valid = 0;
  bool adds = false;
};
void sum_pieces(const RankPieces& pieces, std::span<const RankSum> sums, cudaStream_t stream);

// Loads the kernels of both (kernel_loading.h).
void load_rank_sums();

}  // namespace snug::backends::cuda
