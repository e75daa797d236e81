// Products of a few rows of 16-bit elements with weights (out, in) on the tensor cores, for
// decoding. A tile is 16 outputs of all rows: the warps of a block share the inputs and read each
// weight once; the warps' sums are added in order. A multiprocessor has one block, which computes
// one tile after another and copies the weights of the next steps and tiles meanwhile
// (few_rows_ring.h). It begins to copy before the kernels ahead of it have ended. The bits depend
// only on shapes, so a product has the same bits alone and in a shared launch.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/attention/kernels/rope.h"
#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/card.h"
#include "backends/cuda/product/kernels/nf4.h"

namespace snug::backends::cuda {

// Elements in the format of x, with rows that begin at multiples of 16 bytes.
struct NarrowWeight {
  const uint16_t* data = nullptr;
  int64_t stride = 0;
};

// y = alpha x weight^T (+ addend), to which, rounded, the bias is added.
template <typename Weight>
struct FewRowsPart {
  Weight weight;
  DeviceRows addend;     // data is null if there is none
  DeviceRows bias = {};  // (outputs); data is null if there is none
  DeviceRows y;
  int64_t outputs = 0;
  float alpha = 1.0F;
  uint32_t first_tile = 0;
  // What becomes of y: it is rotated, written to a cache, or both. Nothing if neither has data.
  // Heads are rotated as vectors (can_rotate_vectors).
  RotationPart rotation = {};

  constexpr bool is_rotated() const {
    return rotation.y.data != nullptr || rotation.cache.data != nullptr;
  }
};

// x is replaced by x / root(mean of squares + epsilon) * (weight + offset), which is also written
// to y. Everything can be read kVectorElements at a time.
struct FewRowsNorm {
  DeviceRows x, weight;
  DeviceRows y;  // data is null if there is no norm
  float epsilon = 0.0F;
  float offset = 0.0F;  // added to the weight
};

template <typename Weight>
struct FewRowsLaunch {
  int64_t rows = 0;     // at most kMostFewCodeRows; with a norm kFewRows
  int64_t columns = 0;  // inputs in a row: whole vectors; with NF4 whole blocks of 64
  DeviceRows x;         // 16-bit, rows at multiples of 16 bytes; not read if the launch has a norm
  FewRowsNorm norm;     // if there is one, blocks keep the rows (keeps_few_rows)
  // silu(y of part 0) * (y of part 1), which must have equally many outputs; data is null if not
  // wanted.
  DeviceRows gated;
  // Of the parts that are rotated, and of those that are written to a cache, by row.
  DeviceRows table;
  const int32_t* slots = nullptr;
  // No kernel that may still be running writes the weights, so they may be read before it ends.
  bool weights_are_constant = true;
  int32_t count = 0;
  uint32_t tiles = 0;
  FewRowsPart<Weight> parts[kFewRowsParts];

  // `gated` must be set before. A tile then has outputs of both parts.
  void add(FewRowsPart<Weight> part, bool is_constant) {
    weights_are_constant = weights_are_constant && is_constant;
    part.first_tile = tiles;
    if (count == 0 || gated.data == nullptr)
      tiles += static_cast<uint32_t>(few_rows_tiles(part.outputs));
    parts[count++] = part;
  }
};

// The bits do not depend on the GPU.
void multiply_few_rows(const FewRowsLaunch<NarrowWeight>& run, const Card& card,
                       cudaStream_t stream);
// The values of codes are rounded to the format of x, scales are not: this is as exact as a weight
// that was dequantised to that format.
void multiply_few_rows(const FewRowsLaunch<Nf4Weight>& run, const Card& card, cudaStream_t stream);

}  // namespace snug::backends::cuda
