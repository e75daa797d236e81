#include "backends/cuda/recurrence/kernels/delta_gates.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/recurrence/delta_gates.h"

namespace snug::backends::cuda {
namespace {

using program::DeltaGates;
using program::DeltaGatesGrad;

template <typename Struct>
DeltaGatesRun gates_of(const Invocation& invocation) {
  const Matrix a = matrix_of(invocation[Struct::kA]);
  return {.tokens = a.rows,
          .heads = a.columns,
          .a = a.operand,
          .b = matrix_of(invocation[Struct::kB]).operand,
          .a_log = matrix_of(invocation[Struct::kALog]).operand,
          .dt_bias = matrix_of(invocation[Struct::kDtBias]).operand,
          .g = {},
          .beta = {}};
}

void run(const DeltaGates&, const Invocation& invocation, CudaContext& context) {
  DeltaGatesRun run = gates_of<DeltaGates>(invocation);
  run.g = matrix_of(invocation[DeltaGates::kG]).operand;
  run.beta = matrix_of(invocation[DeltaGates::kBeta]).operand;
  delta_gates(run, context.stream.get());
}

void run(const DeltaGatesGrad& grad, const Invocation& invocation, CudaContext& context) {
  DeltaGatesGradRun run{.forward = gates_of<DeltaGatesGrad>(invocation),
                        .dg = matrix_of(invocation[DeltaGatesGrad::kDG]).operand,
                        .dbeta = matrix_of(invocation[DeltaGatesGrad::kDBeta]).operand,
                        .da = matrix_of(invocation[DeltaGatesGrad::kDA]).operand,
                        .db = matrix_of(invocation[DeltaGatesGrad::kDB]).operand,
                        .da_log = {},
                        .ddt_bias = {}};
  if (grad.weight_gradient) {
    run.da_log = matrix_of(invocation[DeltaGatesGrad::kDALog]).operand;
    run.ddt_bias = matrix_of(invocation[DeltaGatesGrad::kDDtBias]).operand;
  }
  delta_gates_grad(run, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(DeltaGates);
SNUG_CUDA_KIND(DeltaGatesGrad);

}  // namespace snug::backends::cuda
