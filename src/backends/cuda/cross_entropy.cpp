#include "backends/cuda/kernels/cross_entropy.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

SoftmaxRun softmax_run(const Invocation& invocation) {
  const Matrix logits = matrix_of(invocation.reads[0]);
  return {.rows = logits.rows,
          .vocab = logits.columns,
          .trained = {},
          .logits = logits.operand,
          .targets = integers_of(invocation.reads[1]),
          .inverse_tokens = floats_of(invocation.reads[2]),
          .losses = nullptr,
          .dlogits = {}};
}

}  // namespace

void run(const program::CrossEntropy&, const Invocation& invocation, CudaContext& context) {
  SoftmaxRun run = softmax_run(invocation);
  run.losses = floats_of(invocation.writes[0]);
  softmax_rows(run, context.stream.get());
  sum_losses(run.losses, run.rows, run.inverse_tokens, floats_of(invocation.writes[1]),
             context.stream.get());
}

void run(const program::CrossEntropyGrad&, const Invocation& invocation, CudaContext& context) {
  SoftmaxRun run = softmax_run(invocation);
  run.dlogits = matrix_of(invocation.writes[0]).operand;
  softmax_rows(run, context.stream.get());
}

}  // namespace snug::backends::cuda
