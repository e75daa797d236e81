// Counters of blocks that have finished a part of a kernel's work (kernels/last_block.cuh): device
// memory that is zero between kernels. Kernels of one stream use the same ones after each other.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace snug::backends::cuda {

class BlockCounters {
 public:
  static constexpr int64_t kCount = 4096;

  // Takes 16 KiB of the device, outside the arena. Throws UserError where there is no memory.
  explicit BlockCounters(cudaStream_t stream);
  BlockCounters(const BlockCounters&) = delete;
  BlockCounters& operator=(const BlockCounters&) = delete;
  ~BlockCounters();

  uint32_t* data() const { return data_; }

 private:
  uint32_t* data_ = nullptr;
};

}  // namespace snug::backends::cuda
