#include "backends/cuda/attention/kernels/distance_biases.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

// For each head, computes the bias of a query that is `place` - reach positions after its key.
struct MakeTables {
  BiasTablesRun run;
  __device__ void operator()(int64_t head, int64_t place) const {
    const DistanceBiases& biases = run.biases;
    if (head == 0 && place < biases.buckets) run.copied_begins[place] = run.begins.at[place];
    if (place >= bias_places(biases.reach)) return;
    const int64_t x = place - biases.reach;
    const int64_t distance = x < 0 && biases.both_ways ? -x : x;
    int32_t bucket = 0;
    while (bucket + 1 < biases.buckets && run.begins.at[bucket + 1] <= distance) ++bucket;
    if (x < 0 && biases.both_ways) bucket += biases.buckets;
    run.tables[head * biases.head_step + place] =
        load_one(run.bias, bucket * run.bias.stride + head);
  }
};

struct AddBlocks {
  BiasGradRun run;
  __device__ void operator()(int64_t bucket, int64_t head) const {
    float sum = 0.0F;
    for (int64_t block = 0; block < run.blocks; ++block)
      sum += run.sums[(block * run.heads + head) * run.buckets + bucket];
    store_one(run.dbias, bucket * run.dbias.stride + head, sum);
  }
};

}  // namespace

void make_bias_tables(const BiasTablesRun& run, cudaStream_t stream) {
  const int64_t places = bias_places(run.biases.reach);
  const int64_t buckets = run.biases.buckets;
  over_items(MakeTables{run}, run.heads, places > buckets ? places : buckets, stream);
}

void add_bias_blocks(const BiasGradRun& run, cudaStream_t stream) {
  over_items(AddBlocks{run}, run.buckets, run.heads, stream);
}

}  // namespace snug::backends::cuda
