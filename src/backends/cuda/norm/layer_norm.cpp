#include "backends/cuda/norm/kernels/layer_norm.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/norm/layer_norm.h"

namespace snug::backends::cuda {
namespace {

using program::LayerNorm;
using program::LayerNormGrad;

void run(const LayerNorm& norm, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[LayerNorm::kX]);
  const Matrix weight = matrix_of(invocation[LayerNorm::kW]);
  const Matrix bias = norm.bias ? matrix_of(invocation[LayerNorm::kBias]) : weight;
  const Matrix y = matrix_of(invocation[LayerNorm::kY]);
  layer_norm({walk_rows({&x, &weight, &bias, &y}), x.operand, weight.operand,
              norm.bias ? bias.operand : DeviceRows{}, y.operand, norm.epsilon},
             context.stream.get());
}

void run(const LayerNormGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation[LayerNormGrad::kDY]);
  const Matrix x = matrix_of(invocation[LayerNormGrad::kX]);
  const Matrix weight = matrix_of(invocation[LayerNormGrad::kW]);
  const Matrix addend = grad.addend ? matrix_of(invocation[LayerNormGrad::kAddend]) : dy;
  const Matrix dx = matrix_of(invocation[LayerNormGrad::kDX]);
  const LayerNormGradRun run{.walk = walk_rows({&dy, &x, &weight, &addend, &dx}),
                             .dy = dy.operand,
                             .x = x.operand,
                             .weight = weight.operand,
                             .addend = grad.addend ? addend.operand : DeviceRows{},
                             .dx = dx.operand,
                             .epsilon = grad.epsilon};
  if (!grad.weight_gradient) return layer_norm_grad(run, context.stream.get());
  const Matrix dw = matrix_of(invocation[LayerNormGrad::kDW]);
  auto* partials = invocation.workspace.as<float>();
  layer_norm_weight_grad(run,
                         {.partials = partials,
                          .column_partials = partials + norm_partial_floats(x.rows, x.columns),
                          .dw = dw.operand,
                          .accumulate = grad.accumulate},
                         context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(LayerNorm);
SNUG_CUDA_KIND(LayerNormGrad);

}  // namespace snug::backends::cuda
