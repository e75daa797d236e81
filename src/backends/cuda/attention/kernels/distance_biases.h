// Relative position biases of attention's scores. Before attention runs, tables with a bias for
// every distance are computed. For the gradient, each block has summed by bucket, and the blocks
// are added in order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backends/cuda/attention/kernels/attention.h"
#include "backends/cuda/product/kernels/bias_sizes.h"

namespace snug::backends::cuda {

// The smallest distance in each bucket of one direction.
struct BucketBegins {
  int32_t at[kMaxBiasBuckets];
};

struct BiasTablesRun {
  DeviceRows bias;  // (buckets of both directions, heads)
  BucketBegins begins;
  int32_t heads = 0;
  DistanceBiases biases;    // says where tables and bucket bounds are; its tables are filled
  float* tables = nullptr;  // (heads, bias_places(reach))
  int32_t* copied_begins = nullptr;
};
void make_bias_tables(const BiasTablesRun& run, cudaStream_t stream);

struct BiasGradRun {
  const float* sums = nullptr;  // (blocks, heads, buckets of both directions)
  int64_t blocks = 0;
  int32_t heads = 0;
  int32_t buckets = 0;
  DeviceRows dbias;
};
void add_bias_blocks(const BiasGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
