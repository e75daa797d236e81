#include "backends/cuda/kernels/attention.h"

#include <initializer_list>

#include "backends/cuda/attention_splits.h"
#include "backends/cuda/cudnn_attention.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::OperationView;

template <typename Attributes>
AttentionForm form_of(const Attributes& attention) {
  return {static_cast<int32_t>(attention.heads),
          static_cast<int32_t>(attention.kv_heads),
          static_cast<int32_t>(attention.head_dim),
          attention.scale,
          attention.causal,
          attention.window};
}

// Scratch: the ranges of keys, those of queries, then delta (needs/attention.cpp).
template <typename Attributes>
RangesRun ranges_run(const Attributes& attention, const Invocation& invocation, int64_t q_tokens,
                     int64_t k_tokens) {
  const size_t bounds = invocation.reads.size() - 2;
  auto* ranges = invocation.workspace.as<TokenRange>();
  return {.shape = {form_of(attention), q_tokens, k_tokens},
          .segments = invocation.reads[bounds].shape.rows(),
          .q_bounds = integers_of(invocation.reads[bounds]),
          .k_bounds = integers_of(invocation.reads[bounds + 1]),
          .keys = ranges,
          .queries = ranges + q_tokens};
}

// Whether the tensor cores take these operands; else the tiles in f32 do.
bool fits_matrices(const AttentionForm& form, int32_t shared_bytes, const CudaContext& context,
                   std::initializer_list<const Matrix*> operands) {
  bool is_bf16 = true;
  for (const Matrix* operand : operands) is_bf16 = is_bf16 && operand->operand.is_bf16;
  return is_bf16 && form.head_dim % kVectorElements == 0 && form.head_dim <= kMaxMatrixDims &&
         walk_rows(operands).vectors && shared_bytes <= context.device.card.shared_bytes;
}

}  // namespace

std::unique_ptr<Prepared> prepare(const Attention& attributes, const OperationView& view,
                                  CudaContext& context) {
  return prepare_cudnn(attributes, view, context);
}

std::unique_ptr<Prepared> prepare(const AttentionGrad& attributes, const OperationView& view,
                                  CudaContext& context) {
  return prepare_cudnn(attributes, view, context);
}

void run(const Attention& attributes, const Invocation& invocation, CudaContext& context) {
  if (invocation.prepared != nullptr) return run_cudnn(attributes, invocation, context);
  const Matrix q = matrix_of(invocation.reads[0]);
  const Matrix k = matrix_of(invocation.reads[1]);
  const RangesRun ranges = ranges_run(attributes, invocation, q.rows, k.rows);
  if (run_in_splits(ranges, invocation, context)) return;
  find_ranges(ranges, context.stream.get());
  const Matrix v = matrix_of(invocation.reads[2]);
  const AttentionRun run{.shape = ranges.shape,
                         .keys = ranges.keys,
                         .queries = ranges.queries,
                         .q = q.operand,
                         .k = k.operand,
                         .v = v.operand,
                         .o = matrix_of(invocation.writes[0]).operand,
                         .lse = floats_of(invocation.writes[1])};
  const AttentionForm& form = run.shape.form;
  if (fits_matrices(form, attention_matrix_shared_bytes(form.head_dim), context, {&q, &k, &v}))
    attention_matrix(run, context.stream.get());
  else
    attention(run, context.stream.get());
}

void run(const AttentionGrad& attributes, const Invocation& invocation, CudaContext& context) {
  if (invocation.prepared != nullptr) return run_cudnn(attributes, invocation, context);
  const Matrix q = matrix_of(invocation.reads[1]);
  const Matrix k = matrix_of(invocation.reads[2]);
  const RangesRun ranges = ranges_run(attributes, invocation, q.rows, k.rows);
  find_ranges(ranges, context.stream.get());
  const Matrix d_o = matrix_of(invocation.reads[0]);
  const Matrix v = matrix_of(invocation.reads[3]);
  const AttentionGradRun run{.shape = ranges.shape,
                             .keys = ranges.keys,
                             .queries = ranges.queries,
                             .d_o = d_o.operand,
                             .q = q.operand,
                             .k = k.operand,
                             .v = v.operand,
                             .o = matrix_of(invocation.reads[4]).operand,
                             .lse = floats_of(invocation.reads[5]),
                             .delta = reinterpret_cast<float*>(ranges.queries + k.rows),
                             .dq = matrix_of(invocation.writes[0]).operand,
                             .dk = matrix_of(invocation.writes[1]).operand,
                             .dv = matrix_of(invocation.writes[2]).operand};
  const AttentionForm& form = run.shape.form;
  if (fits_matrices(form, attention_grad_matrix_shared_bytes(form.head_dim), context,
                    {&d_o, &q, &k, &v}))
    attention_grad_matrix(run, context.stream.get());
  else
    attention_grad(run, context.stream.get());
}

}  // namespace snug::backends::cuda
