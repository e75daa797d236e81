#include "backends/cuda/attention_splits.h"

#include "backends/cuda/kernels/attention_splits.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/needs/attention_splits.h"

namespace snug::backends::cuda {

bool run_in_splits(const RangesRun& segments, const Invocation& invocation, CudaContext& context) {
  const AttentionForm& form = segments.shape.form;
  const SplitShape shape{form.heads,
                         form.kv_heads,
                         form.head_dim,
                         segments.shape.q_tokens,
                         segments.shape.k_tokens,
                         segments.segments};
  const int64_t splits = attention_splits(shape, context.device.card);
  if (splits == 0) return false;
  const Matrix k = matrix_of(invocation.reads[1]);
  const Matrix v = matrix_of(invocation.reads[2]);
  const int64_t parts = shape.q_tokens * shape.heads * splits;
  auto* scratch = invocation.workspace.as<float>();
  attention_splits({.segments = segments,
                    .splits = static_cast<int32_t>(splits),
                    .vectors = k.operand.is_bf16 && v.operand.is_bf16 &&
                               form.head_dim % kVectorElements == 0 && walk_rows({&k, &v}).vectors,
                    .q = matrix_of(invocation.reads[0]).operand,
                    .k = k.operand,
                    .v = v.operand,
                    .o = matrix_of(invocation.writes[0]).operand,
                    .lse = floats_of(invocation.writes[1]),
                    .peaks = scratch,
                    .totals = scratch + parts,
                    .outputs = scratch + 2 * parts},
                   context.stream.get());
  return true;
}

}  // namespace snug::backends::cuda
