// Finds a block's tensor. The list must stay in the kernel's arguments, where all threads of a
// block read the same words: declare it `const __grid_constant__`.
#pragma once

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/tensor_list.h"

namespace snug::backends::cuda {

// The last tensor whose first block is not after this one.
template <typename Tensor, int kCapacity>
__device__ const Tensor& tensor_of_block(const TensorList<Tensor, kCapacity>& list) {
  int32_t begin = 0;
  int32_t end = list.count;
  while (end - begin > 1) {
    const int32_t middle = (begin + end) / 2;
    if (list.at[middle].first_block <= blockIdx.x)
      begin = middle;
    else
      end = middle;
  }
  return list.at[begin];
}

template <typename Tensor, int kCapacity>
LaunchShape shape_of(const TensorList<Tensor, kCapacity>& list, uint32_t threads) {
  LaunchShape shape;
  shape.grid.x = list.blocks;
  shape.block.x = threads;
  return shape;
}

}  // namespace snug::backends::cuda
