// Kernels in which every thread processes one item of a row independently: work(row, item), with
// adjacent items in adjacent threads. Short rows share a block.
#pragma once

#include <cstdint>

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

template <typename Work>
__global__ void over_items_kernel(Work work, int64_t rows, int64_t items) {
  wait_for_kernels_before();
  const int64_t item = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (item >= items) return;
  const int64_t step = int64_t{gridDim.y} * blockDim.y;
  for (int64_t row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < rows; row += step)
    work(row, item);
}

template <typename Work>
void over_items(const Work& work, int64_t rows, int64_t items, cudaStream_t stream) {
  if (rows == 0 || items == 0) return;
  constexpr uint32_t kThreads = 256;
  LaunchShape shape;
  shape.block.x = kThreads;
  while (shape.block.x > 1 && shape.block.x / 2 >= items) shape.block.x /= 2;
  shape.block.y = kThreads / shape.block.x;
  shape.grid.x = static_cast<uint32_t>(ceil_div(items, shape.block.x));
  const int64_t row_blocks = ceil_div(rows, shape.block.y);
  shape.grid.y = row_blocks < kMaxGridY ? static_cast<uint32_t>(row_blocks) : kMaxGridY;
  shape.begins_early = true;
  launch(over_items_kernel<Work>, shape, stream, work, rows, items);
}

// Runs Work<kCount>{run}(row, column) for kCount elements from `column` on, where kCount is the
// most that run.walk allows.
template <template <int> typename Work, typename Run>
void over_elements(const Run& run, cudaStream_t stream) {
  const Walk& walk = run.walk;
  if (walk.vectors)
    over_items(Work<kVectorElements>{run}, walk.rows, walk.columns / kVectorElements, stream);
  else
    over_items(Work<1>{run}, walk.rows, walk.columns, stream);
}

}  // namespace snug::backends::cuda
