#include "backends/cuda/expert/kernels/balance_loss.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/expert/balance_loss.h"

namespace snug::backends::cuda {
namespace {

using program::BalanceLoss;
using program::BalanceLossTrain;

// `dsums` may be null.
template <typename Struct>
void run_layers(const Struct& loss, const Invocation& invocation, float* dsums,
                CudaContext& context) {
  const std::span<const Buffer> reads = invocation.all(program::Access::read);
  const int64_t layers = program::balanced_layers(reads.size());
  BalanceRun run;
  run.all_layers = static_cast<int32_t>(layers);
  run.experts = static_cast<int32_t>(invocation[Struct::kLayers].elements());
  run.k = static_cast<int32_t>(loss.k);
  run.factor = loss.factor;
  run.inverse_tokens = floats_of(invocation[Struct::kInverseTokens]);
  run.loads = invocation.workspace.as<RouteLoad>();
  run.loss = floats_of(invocation[Struct::kLoss]);
  run.dsums = dsums;
  for (int64_t layer = 0; layer < layers; ++layer) {
    run.layers[run.count++] = {integers_of(reads[program::counts_read(layer)]),
                               floats_of(reads[program::sums_read(layer)])};
    run.is_last = layer + 1 == layers;
    if (run.count < kBalanceLayers && !run.is_last) continue;
    balance_loss(run, context.stream.get());
    run.count = 0;
    run.is_first = false;
  }
}

void run(const BalanceLoss& loss, const Invocation& invocation, CudaContext& context) {
  run_layers(loss, invocation, nullptr, context);
}

void run(const BalanceLossTrain& loss, const Invocation& invocation, CudaContext& context) {
  run_layers(loss, invocation, floats_of(invocation[BalanceLossTrain::kDSums]), context);
}

}  // namespace

SNUG_CUDA_KIND(BalanceLoss);
SNUG_CUDA_KIND(BalanceLossTrain);

}  // namespace snug::backends::cuda
