#include "backends/cuda/attention/kernels/attention_sinks.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/matrices.h"
#include "program/kinds/attention/attention_sinks.h"

namespace snug::backends::cuda {
namespace {

using program::AttentionSinkGrad;

void run(const AttentionSinkGrad&, const Invocation& invocation, CudaContext& context) {
  const Matrix o = matrix_of(invocation[AttentionSinkGrad::kO]);
  const int64_t heads = invocation[AttentionSinkGrad::kSinks].elements();
  AttentionShape shape;
  shape.form.heads = shape.form.kv_heads = static_cast<int32_t>(heads);
  shape.form.head_dim = static_cast<int32_t>(o.columns / heads);
  shape.q_tokens = o.rows;
  attention_sinks_grad({.shape = shape,
                        .d_o = matrix_of(invocation[AttentionSinkGrad::kDO]).operand,
                        .o = o.operand,
                        .sinks = matrix_of(invocation[AttentionSinkGrad::kSinks]).operand,
                        .lse = floats_of(invocation[AttentionSinkGrad::kLse]),
                        .delta = invocation.workspace.as<float>(),
                        .dsinks = matrix_of(invocation[AttentionSinkGrad::kDSinks]).operand},
                       context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(AttentionSinkGrad);

}  // namespace snug::backends::cuda
