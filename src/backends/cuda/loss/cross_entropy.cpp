#include "backends/cuda/loss/kernels/cross_entropy.h"

#include "backends/cuda/expert/token_factors.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cuda {
namespace {

using program::CrossEntropy;
using program::CrossEntropyGrad;

template <typename Attributes>
SoftmaxRun softmax_run(const Attributes& loss, const Invocation& invocation) {
  const Matrix logits = matrix_of(invocation[Attributes::kLogits]);
  return {.rows = logits.rows,
          .vocab = logits.columns,
          .trained = {},
          .logits = logits.operand,
          .targets = integers_of(invocation[Attributes::kTargets]),
          .factors = factors_of(invocation[Attributes::kInverseTokens]),
          .losses = nullptr,
          .smoothing = loss.smoothing,
          .dlogits = {}};
}

void run(const CrossEntropy& loss, const Invocation& invocation, CudaContext& context) {
  SoftmaxRun run = softmax_run(loss, invocation);
  run.losses = floats_of(invocation[CrossEntropy::kLosses]);
  softmax_rows(run, context.stream.get());
  sum_losses(run.losses, run.rows, run.factors, floats_of(invocation[CrossEntropy::kLoss]),
             context.stream.get());
}

void run(const CrossEntropyGrad& grad, const Invocation& invocation, CudaContext& context) {
  SoftmaxRun run = softmax_run(grad, invocation);
  run.dlogits = matrix_of(invocation[CrossEntropyGrad::kDLogits]).operand;
  softmax_rows(run, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(CrossEntropy);
SNUG_CUDA_KIND(CrossEntropyGrad);

}  // namespace snug::backends::cuda
