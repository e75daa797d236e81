#include "backends/cuda/device/block_counters.h"

#include <cstddef>

#include "backends/cuda/device/cuda_check.h"

namespace snug::backends::cuda {
namespace {

constexpr size_t kCounterBytes = size_t{BlockCounters::kCount} * sizeof(uint32_t);

}  // namespace

BlockCounters::BlockCounters(cudaStream_t stream) {
  CUDA_CHECK_MEMORY("counters of blocks",
                    cudaMalloc(reinterpret_cast<void**>(&data_), kCounterBytes));
  CUDA_CHECK(cudaMemsetAsync(data_, 0, kCounterBytes, stream));
}

BlockCounters::~BlockCounters() { cudaFree(data_); }

}  // namespace snug::backends::cuda
