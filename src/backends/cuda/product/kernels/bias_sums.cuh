// Sums the gradients of a block's scores by distance and then by bucket. Each warp has its own
// table and adds for 32 consecutive keys of one query at a time, which are 32 consecutive entries:
// no two lanes access the same entry, and every sum has a fixed order.
#pragma once

#include "backends/cuda/attention/kernels/attention.h"
#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/product/kernels/bias_sizes.h"

namespace snug::backends::cuda {

// Does nothing where the gradient is not wanted.
template <bool kWanted>
class BiasSums {
 public:
  __device__ BiasSums(float*, const DistanceBiases&) {}
  __device__ void add(int32_t, float) const {}
  __device__ void store(float*, int64_t, int64_t) const {}
};

template <>
class BiasSums<true> {
 public:
  // `memory` is the block's bias_shared_bytes. All threads take part, and a __syncthreads() must
  // follow before the first add.
  __device__ BiasSums(float* memory, const DistanceBiases& biases)
      : biases_(biases), memory_(memory), side_(static_cast<int32_t>(bias_side(biases.reach))) {
    const auto floats = static_cast<int>(kBiasWarps * bias_sums(biases.reach));
    for (int i = static_cast<int>(threadIdx.x); i < floats; i += static_cast<int>(blockDim.x))
      memory_[i] = 0.0F;
  }

  // Adds the gradient for the lane's key, which is `lane` keys after that of the first lane; the
  // first lane's key is x positions before the query. From the reach on all distances are in one
  // bucket.
  __device__ void add(int32_t x, float d_score) const {
    const auto lane = static_cast<int32_t>(threadIdx.x % kLanes);
    int32_t last = x - (kLanes - 1);
    last = last < -side_ ? -side_ : last;
    last = last > biases_.reach ? biases_.reach : last;
    table(static_cast<int>(threadIdx.x / kLanes))[side_ + last + kLanes - 1 - lane] += d_score;
    __syncwarp();
  }

  // Writes the sums of the block's head by bucket to (blocks, heads, buckets of both directions).
  __device__ void store(float* sums, int64_t head, int64_t heads) const {
    __syncthreads();
    const int32_t buckets = biases_.both_ways ? 2 * biases_.buckets : biases_.buckets;
    float* mine = sums + (int64_t{blockIdx.x} * heads + head) * buckets;
    for (auto i = static_cast<int32_t>(threadIdx.x); i < buckets;
         i += static_cast<int32_t>(blockDim.x))
      mine[i] = i < biases_.buckets ? sum_of(i, 1) : sum_of(i - biases_.buckets, -1);
  }

 private:
  __device__ float* table(int warp) const { return memory_ + warp * (2 * side_ + 1); }

  // The sum over the distances of a bucket, for keys before their query (direction 1) or after it
  // (-1).
  __device__ float sum_of(int32_t bucket, int32_t direction) const {
    int32_t begin = biases_.begins[bucket];
    if (direction < 0 && begin == 0) begin = 1;
    int32_t end = side_ + 1;
    if (bucket + 1 < biases_.buckets && biases_.begins[bucket + 1] < end)
      end = biases_.begins[bucket + 1];
    float sum = 0.0F;
    for (int warp = 0; warp < kBiasWarps; ++warp)
      for (int32_t distance = begin; distance < end; ++distance)
        sum += table(warp)[side_ + direction * distance];
    return sum;
  }

  const DistanceBiases& biases_;
  float* memory_;
  int32_t side_;
};

// Sums tiles of scores in the layout of the tensor cores, with a warp's 16 queries and 32 keys:
// they go through shared memory, so that lanes get consecutive keys.
template <bool kWanted>
class BiasTileSums {
 public:
  __device__ BiasTileSums(void*, const DistanceBiases&) {}
  __device__ void keep(int, int, float) const {}
  __device__ void add_tile(int32_t, int32_t) const {}
  __device__ void store(float*, int64_t, int64_t) const {}
};

template <>
class BiasTileSums<true> {
 public:
  // `memory` is the block's bias_matrix_shared_bytes.
  __device__ BiasTileSums(void* memory, const DistanceBiases& biases)
      : tile_(static_cast<float*>(memory) + threadIdx.x / kLanes * kBiasTileFloats),
        sums_(static_cast<float*>(memory) + kBiasWarps * kBiasTileFloats, biases) {}

  // Stores the value for one row and column of the warp's tile.
  __device__ void keep(int row, int column, float d_score) const {
    tile_[row * kBiasTileStride + column] = d_score;
  }

  // Adds the stored tile. x is the distance of the first key before the queries of the lane's two
  // rows, g and g + 8 of warp_matrix.cuh.
  __device__ void add_tile(int32_t x_lower, int32_t x_upper) const {
    __syncwarp();
    for (int row = 0; row < kBlockRows / kBiasWarps; ++row) {
      const int32_t x = __shfl_sync(kWholeWarp, row < 8 ? x_lower : x_upper, row % 8 * 4);
      sums_.add(x, tile_[row * kBiasTileStride + static_cast<int>(threadIdx.x % kLanes)]);
    }
  }

  __device__ void store(float* sums, int64_t head, int64_t heads) const {
    sums_.store(sums, head, heads);
  }

 private:
  float* tile_;
  BiasSums<true> sums_;
};

}  // namespace snug::backends::cuda
