#include "backends/cuda/expert/kernels/balance_loss.h"

#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/kernels/tensor_list.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 256;

static_assert(sizeof(BalanceRun) <= kArgumentBytes);

// A thread handles every 256th expert, whose loads no other thread reads.
__global__ void __launch_bounds__(kThreads)
    balance_loss_kernel(const __grid_constant__ BalanceRun run) {
  wait_for_kernels_before();
  float totals[2] = {0.0F, 0.0F};  // over all experts: choices, and counts times probability sums
  for (int32_t e = static_cast<int32_t>(threadIdx.x); e < run.experts; e += kThreads) {
    RouteLoad load = run.is_first ? RouteLoad{0, 0.0F} : run.loads[e];
    for (int32_t layer = 0; layer < run.count; ++layer) {
      load.count += run.layers[layer].counts[e];
      load.sum += run.layers[layer].sums[e];
    }
    run.loads[e] = load;
    totals[0] += static_cast<float>(load.count);
    totals[1] += static_cast<float>(load.count) * load.sum;
  }
  if (!run.is_last) return;
  block_sums(totals);
  const float tokens = totals[0] / static_cast<float>(run.k);
  float scale = 0.0F;
  if (totals[0] > 0.0F)
    scale = run.factor * static_cast<float>(run.experts) * *run.inverse_tokens /
            (static_cast<float>(run.all_layers) * tokens);
  if (threadIdx.x == 0) *run.loss = scale * totals[1];
  if (run.dsums == nullptr) return;
  for (int32_t e = static_cast<int32_t>(threadIdx.x); e < run.experts; e += kThreads)
    run.dsums[e] = scale * static_cast<float>(run.loads[e].count);
}

}  // namespace

void balance_loss(const BalanceRun& run, cudaStream_t stream) {
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.begins_early = true;
  launch(balance_loss_kernel, shape, stream, run);
}

}  // namespace snug::backends::cuda
