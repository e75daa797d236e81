#include "backends/cuda/kernels/nf4.cuh"

#include "formats/nf4.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int64_t kItemsPerThread = 4;

template <int kCount>
__global__ void dequantize_kernel(const __grid_constant__ DequantizeRun run,
                                  const __grid_constant__ Nf4Values values) {
  __shared__ float table[kNf4Values];
  share_table(values, table);
  const int64_t items = run.walk.rows * run.walk.columns / kCount;
  const int64_t first = int64_t{blockIdx.x} * kThreads * kItemsPerThread + threadIdx.x;
  for (int64_t i = 0; i < kItemsPerThread; ++i) {
    const int64_t item = first + i * kThreads;
    if (item >= items) return;
    const int64_t element = item * kCount;
    const int64_t row = run.walk.rows == 1 ? 0 : element / run.walk.columns;
    store(run.w, row * run.w.stride + element - row * run.walk.columns,
          decode<kCount>(run.stored, element, table));
  }
}

}  // namespace

Nf4Values nf4_values() {
  Nf4Values values{};
  for (int i = 0; i < kNf4Values; ++i) values.at[i] = formats::kNf4Codes[static_cast<size_t>(i)];
  return values;
}

void dequantize_nf4(const DequantizeRun& run, cudaStream_t stream) {
  const int64_t elements = run.walk.vectors ? kVectorElements : 1;
  const int64_t items = run.walk.rows * run.walk.columns / elements;
  if (items == 0) return;
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.grid.x = static_cast<uint32_t>(ceil_div(items, kThreads * kItemsPerThread));
  launch(run.walk.vectors ? dequantize_kernel<kVectorElements> : dequantize_kernel<1>, shape,
         stream, run, nf4_values());
}

}  // namespace snug::backends::cuda
