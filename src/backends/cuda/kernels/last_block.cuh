// Which of several blocks is the last to come to a point, so that it can go on with what all of
// them wrote. None waits for another.
#pragma once

#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {

// Whether this block is the last of `count` that call it with the same counter, which is zero
// before and after. All threads of a block call it. Those of the last one may then read what any
// thread of the blocks wrote before its call.
//
// That is so by the PTX memory model: what a thread wrote comes before the barrier, and so before
// the fence of its block's first thread and before the count that this thread adds. The count of
// the last block reads, through the counts between, what the others added; its fence comes after,
// and its second barrier puts the fence before the reads of all its threads. The fences and the
// count hold for the whole device.
__device__ inline bool is_last_block(uint32_t* counter, uint32_t count) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    // It goes from count - 1 back to zero.
    is_last = atomicInc(counter, count - 1) == count - 1;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

}  // namespace snug::backends::cuda
