#include "backends/cuda/norm/kernels/rms_norm.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/few_rows.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/norm/rms_norm.h"

namespace snug::backends::cuda {
namespace {

using program::RmsNorm;
using program::RmsNormGrad;

void run(const RmsNorm& norm, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation[RmsNorm::kX]);
  const Matrix weight = matrix_of(invocation[RmsNorm::kW]);
  const Matrix y = matrix_of(invocation[RmsNorm::kY]);
  rms_norm({walk_rows({&x, &weight, &y}), x.operand, weight.operand, y.operand, norm.epsilon,
            norm.offset},
           context.stream.get());
}

void run_together(const RmsNorm&, std::span<const Invocation> list, CudaContext& context) {
  run_few_rows_together(list, context);
}

void run(const RmsNormGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation[RmsNormGrad::kDY]);
  const Matrix x = matrix_of(invocation[RmsNormGrad::kX]);
  const Matrix weight = matrix_of(invocation[RmsNormGrad::kW]);
  const Matrix addend = grad.addend ? matrix_of(invocation[RmsNormGrad::kAddend]) : dy;
  const Matrix dx = matrix_of(invocation[RmsNormGrad::kDX]);
  const RmsNormGradRun run{.walk = walk_rows({&dy, &x, &weight, &addend, &dx}),
                           .dy = dy.operand,
                           .x = x.operand,
                           .weight = weight.operand,
                           .addend = grad.addend ? addend.operand : DeviceRows{},
                           .dx = dx.operand,
                           .epsilon = grad.epsilon,
                           .offset = grad.offset};
  if (!grad.weight_gradient) return rms_norm_grad(run, context.stream.get());
  const Matrix dw = matrix_of(invocation[RmsNormGrad::kDW]);
  auto* partials = invocation.workspace.as<float>();
  rms_norm_weight_grad(run,
                       {.partials = partials,
                        .column_partials = partials + norm_partial_floats(x.rows, x.columns),
                        .dw = dw.operand,
                        .accumulate = grad.accumulate},
                       context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(RmsNorm, .run_together = run_together);
SNUG_CUDA_KIND(RmsNormGrad);

}  // namespace snug::backends::cuda
