#include "backends/cuda/kernels/rms_norm.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {

void run(const program::RmsNorm& norm, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation.reads[0]);
  const Matrix weight = matrix_of(invocation.reads[1]);
  const Matrix y = matrix_of(invocation.writes[0]);
  rms_norm({walk_rows({&x, &weight, &y}), x.operand, weight.operand, y.operand, norm.epsilon},
           context.stream.get());
}

void run(const program::RmsNormGrad& grad, const Invocation& invocation, CudaContext& context) {
  const Matrix dy = matrix_of(invocation.reads[0]);
  const Matrix x = matrix_of(invocation.reads[1]);
  const Matrix weight = matrix_of(invocation.reads[2]);
  const Matrix addend = grad.addend ? matrix_of(invocation.reads[3]) : dy;
  const Matrix dx = matrix_of(invocation.writes[0]);
  const RmsNormGradRun run{.walk = walk_rows({&dy, &x, &weight, &addend, &dx}),
                           .dy = dy.operand,
                           .x = x.operand,
                           .weight = weight.operand,
                           .addend = grad.addend ? addend.operand : Operand{},
                           .dx = dx.operand,
                           .epsilon = grad.epsilon};
  if (!grad.weight_gradient) return rms_norm_grad(run, context.stream.get());
  const Matrix dw = matrix_of(grad.accumulate ? invocation.updates[0] : invocation.writes[1]);
  auto* partials = invocation.workspace.as<float>();
  rms_norm_weight_grad(run,
                       {.partials = partials,
                        .column_partials = partials + norm_partial_floats(x.rows, x.columns),
                        .dw = dw.operand,
                        .accumulate = grad.accumulate},
                       context.stream.get());
}

}  // namespace snug::backends::cuda
