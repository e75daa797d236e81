#include "backends/cuda/recurrence/kernels/causal_convolution.h"

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/recurrence/causal_convolution.h"

namespace snug::backends::cuda {
namespace {

using program::CausalConvolution;
using program::CausalConvolutionGrad;

// The workspace begins with the scratch for dw, and ends with a number for each row.
template <typename Struct>
CausalConvolutionRun run_of(const Invocation& invocation, int64_t scratch_bytes) {
  const Matrix x = matrix_of(invocation[Struct::kX]);
  const Matrix w = matrix_of(invocation[Struct::kW]);
  const Buffer& bounds = invocation[Struct::kBounds];
  return {.rows = x.rows,
          .columns = x.columns,
          .width = w.columns,
          .x = x.operand,
          .w = w.operand,
          .y = {},
          .bounds = integers_of(bounds),
          .segments = bounds.shape[0],
          .slots = nullptr,
          .state = {},
          .taps = reinterpret_cast<int32_t*>(invocation.workspace.data + scratch_bytes)};
}

void run(const CausalConvolution& convolution, const Invocation& invocation, CudaContext& context) {
  CausalConvolutionRun run = run_of<CausalConvolution>(invocation, 0);
  run.y = matrix_of(invocation[CausalConvolution::kY]).operand;
  run.plain = convolution.plain;
  if (convolution.cached) {
    run.slots = integers_of(invocation[CausalConvolution::kSlots]);
    run.state = matrix_of(invocation[CausalConvolution::kState]).operand;
  }
  causal_convolution(run, context.stream.get());
}

void run(const CausalConvolutionGrad& grad, const Invocation& invocation, CudaContext& context) {
  const program::Shape& shape = invocation[CausalConvolutionGrad::kX].shape;
  const int64_t scratch =
      grad.weight_gradient
          ? column_sums_bytes(shape[0], invocation[CausalConvolutionGrad::kW].elements())
          : 0;
  CausalConvolutionGradRun run{.forward = run_of<CausalConvolutionGrad>(invocation, scratch),
                               .dy = matrix_of(invocation[CausalConvolutionGrad::kDY]).operand,
                               .dx = matrix_of(invocation[CausalConvolutionGrad::kDX]).operand,
                               .dw = {},
                               .partials = invocation.workspace.as<float>()};
  run.forward.plain = grad.plain;
  if (grad.weight_gradient) run.dw = matrix_of(invocation[CausalConvolutionGrad::kDW]).operand;
  causal_convolution_grad(run, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(CausalConvolution);
SNUG_CUDA_KIND(CausalConvolutionGrad);

}  // namespace snug::backends::cuda
