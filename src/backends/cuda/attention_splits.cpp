#include "backends/cuda/attention_splits.h"

#include "backends/cuda/kernels/attention_splits.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/needs/attention_splits.h"

namespace snug::backends::cuda {

using program::Attention;

void run_in_splits(const Attention& attention, const RangesRun& segments,
                   const Invocation& invocation, CudaContext& context) {
  invocation.note_decision("by_library", 0);
  invocation.note_decision("splits", attention.splits);
  invocation.note_decision("tensor_cores", 0);
  invocation.note_decision("few_queries", 0);
  const AttentionForm& form = segments.shape.form;
  const Matrix k = matrix_of(invocation[Attention::kK]);
  const Matrix v = matrix_of(invocation[Attention::kV]);
  const int64_t parts = segments.shape.q_tokens * form.heads * attention.splits;
  auto* scratch = invocation.workspace.as<float>();
  attention_splits({.segments = segments,
                    .splits = static_cast<int32_t>(attention.splits),
                    .vectors = k.operand.is_bf16 && v.operand.is_bf16 &&
                               form.head_dim % kVectorElements == 0 && walk_rows({&k, &v}).vectors,
                    .q = matrix_of(invocation[Attention::kQ]).operand,
                    .k = k.operand,
                    .v = v.operand,
                    .o = matrix_of(invocation[Attention::kO]).operand,
                    .lse = floats_of(invocation[Attention::kLse]),
                    .peaks = scratch,
                    .totals = scratch + parts,
                    .outputs = scratch + 2 * parts},
                   context.stream.get());
}

}  // namespace snug::backends::cuda
