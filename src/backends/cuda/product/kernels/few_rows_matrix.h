// Products of a few rows of 16 bits with weights (out, in) on the tensor cores, for decoding. A
// tile is 16 outputs of all rows: the warps of a block share its inputs out and read each weight
// once, 16 bytes a lane, eight (NF4: four) such reads ahead; the warps' sums are added up in their
// order. A block makes one tile after the other and reads the next one's weights while it ends one.
// Bits depend on shapes alone, so a product that shares its launch has those that it has by itself.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/card.h"
#include "backends/cuda/product/kernels/nf4.h"

namespace snug::backends::cuda {

// Elements of the format of x, rows that begin at multiples of 16 bytes.
struct NarrowWeight {
  const uint16_t* data = nullptr;
  int64_t stride = 0;
};

// y = alpha x weight^T (+ addend).
template <typename Weight>
struct FewRowsPart {
  Weight weight;
  DeviceRows addend;  // data == nullptr without one
  DeviceRows y;
  int64_t outputs = 0;
  float alpha = 1.0F;
  uint32_t first_tile = 0;
};

// x = x / root(mean of squares + epsilon) * (weight + offset), which is also left in y. All may be
// read kVectorElements at a time.
struct FewRowsNorm {
  DeviceRows x, weight;
  DeviceRows y;  // data == nullptr: there is no norm
  float epsilon = 0.0F;
  float offset = 0.0F;  // of the weight
};

template <typename Weight>
struct FewRowsLaunch {
  int64_t rows = 0;     // at most kFewRows
  int64_t columns = 0;  // inputs of a row: whole vectors; with NF4 whole blocks of 64
  DeviceRows x;      // 16 bits, rows at multiples of 16 bytes; not read where the launch has a norm
  FewRowsNorm norm;  // where there is one, blocks keep the rows (keeps_few_rows)
  // silu(y of part 0) * (y of part 1), of as many outputs each; data == nullptr: not made.
  DeviceRows gated;
  // No kernel that may still be running writes the weights: they are read before it has ended.
  bool weights_are_constant = true;
  int32_t count = 0;
  uint32_t tiles = 0;
  FewRowsPart<Weight> parts[kFewRowsParts];

  // `gated` is known before. A tile then has outputs of both parts.
  void add(FewRowsPart<Weight> part, bool is_constant) {
    weights_are_constant = weights_are_constant && is_constant;
    part.first_tile = tiles;
    if (count == 0 || gated.data == nullptr)
      tiles += static_cast<uint32_t>(few_rows_tiles(part.outputs));
    parts[count++] = part;
  }
};

// No bit depends on the card.
void multiply_few_rows(const FewRowsLaunch<NarrowWeight>& run, const Card& card,
                       cudaStream_t stream);
// The values that codes stand for are rounded to the format of x, scales are not: as near as a
// weight that is dequantised to it.
void multiply_few_rows(const FewRowsLaunch<Nf4Weight>& run, const Card& card, cudaStream_t stream);

}  // namespace snug::backends::cuda
