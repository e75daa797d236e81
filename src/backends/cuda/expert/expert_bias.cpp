#include "backends/cuda/expert/kernels/expert_bias.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/expert/expert_bias.h"

namespace snug::backends::cuda {
namespace {

using program::AddExpertBias;
using program::ExpertBiasGrad;
using program::ExpertBiasWeightsGrad;

void run(const AddExpertBias& add, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[AddExpertBias::kX]);
  const Matrix bias = matrix_of(invocation[AddExpertBias::kBias]);
  const Matrix y = matrix_of(invocation[AddExpertBias::kY]);
  AddExpertBiasRun run{walk_rows({&x, &bias, &y}),
                       x.operand,
                       bias.operand,
                       y.operand,
                       integers_of(invocation[AddExpertBias::kBounds]),
                       bias.rows};
  if (add.weighted) {
    run.weights = floats_of(invocation[AddExpertBias::kWeights]);
    run.places = integers_of(invocation[AddExpertBias::kPlaces]);
  }
  add_expert_bias(run, context.stream.get());
}

void run(const ExpertBiasGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation[ExpertBiasGrad::kDY]);
  const Matrix dbias = matrix_of(invocation[ExpertBiasGrad::kDBias]);
  ExpertBiasGradRun run{.rows = dy.rows,
                        .columns = dy.columns,
                        .experts = dbias.rows,
                        .dy = dy.operand,
                        .dbias = dbias.operand,
                        .bounds = integers_of(invocation[ExpertBiasGrad::kBounds])};
  if (grad.weighted) {
    run.weights = floats_of(invocation[ExpertBiasGrad::kWeights]);
    run.places = integers_of(invocation[ExpertBiasGrad::kPlaces]);
    run.by_row = invocation.workspace.as<float>();
  }
  expert_bias_grad(run, context.stream.get());
}

void run(const ExpertBiasWeightsGrad&, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation[ExpertBiasWeightsGrad::kDY]);
  const Matrix bias = matrix_of(invocation[ExpertBiasWeightsGrad::kBias]);
  expert_bias_weights_grad({walk_rows({&dy, &bias}), dy.operand, bias.operand,
                            integers_of(invocation[ExpertBiasWeightsGrad::kBounds]), bias.rows,
                            integers_of(invocation[ExpertBiasWeightsGrad::kPlaces]),
                            floats_of(invocation[ExpertBiasWeightsGrad::kDWeights])},
                           context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(AddExpertBias);
SNUG_CUDA_KIND(ExpertBiasGrad);
SNUG_CUDA_KIND(ExpertBiasWeightsGrad);

}  // namespace snug::backends::cuda
