#include "backends/cuda/kernels/attention.h"

#include <initializer_list>

#include "backends/cuda/cudnn_attention.h"
#include "backends/cuda/kernels/attention_splits.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::OperationView;

template <typename Attributes>
AttentionForm attention_form_of(const Attributes& attention) {
  return {static_cast<int32_t>(attention.heads),
          static_cast<int32_t>(attention.kv_heads),
          static_cast<int32_t>(attention.head_dim),
          attention.scale,
          attention.causal,
          attention.window,
          attention.softcap,
          attention.alibi_scale};
}

// Scratch: the ranges of keys, those of queries, then delta (needs/attention.cpp).
template <typename Attributes>
RangesRun ranges_run(const Attributes& attention, const Invocation& invocation, int64_t q_tokens,
                     int64_t k_tokens) {
  auto* ranges = invocation.workspace.as<TokenRange>();
  return {.shape = {attention_form_of(attention), q_tokens, k_tokens},
          .segments = invocation[Attributes::kQBounds].shape.rows(),
          .q_bounds = integers_of(invocation[Attributes::kQBounds]),
          .k_bounds = integers_of(invocation[Attributes::kKBounds]),
          .keys = ranges,
          .queries = ranges + q_tokens};
}

// What was decided of the operands' places in the arena holds of their addresses.
void check_vectors(std::initializer_list<const Matrix*> operands) {
  SNUG_CHECK(walk_rows(operands).vectors, "attention on tensor cores reads rows out of line");
}

std::unique_ptr<Prepared> prepare(const Attention& attributes, const OperationView& view,
                                  CudaContext& context) {
  SNUG_CHECK(attributes.few_queries == 0, "a card has no kernel for segments of few queries");
  return attributes.by_library ? prepare_cudnn(attributes, view, context) : nullptr;
}

std::unique_ptr<Prepared> prepare(const AttentionGrad& attributes, const OperationView& view,
                                  CudaContext& context) {
  SNUG_CHECK(attributes.few_queries == 0 && attributes.few_keys == 0,
             "a card has no kernel for segments of few queries or keys");
  SNUG_CHECK(attributes.by_library || !program::copies_operands(attributes),
             "own kernels read and write what has gaps where it lies");
  return attributes.by_library ? prepare_cudnn(attributes, view, context) : nullptr;
}

// Without data where there are none.
DeviceRows sinks_of(const Attention& attention, const Invocation& invocation) {
  return attention.sinks ? matrix_of(invocation[Attention::kSinks]).operand : DeviceRows{};
}

// Decoding: queues the attention of `segments` in as many parts as it was decided
// (needs/attention.h).
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
  attention_splits(
      {.segments = segments,
       .splits = static_cast<int32_t>(attention.splits),
       .vectors = is_narrow(k.operand.format) && k.operand.format == v.operand.format &&
                  form.head_dim % kVectorElements == 0 && walk_rows({&k, &v}).vectors,
       .q = matrix_of(invocation[Attention::kQ]).operand,
       .k = k.operand,
       .v = v.operand,
       .o = matrix_of(invocation[Attention::kO]).operand,
       .lse = floats_of(invocation[Attention::kLse]),
       .sinks = sinks_of(attention, invocation),
       .peaks = scratch,
       .totals = scratch + parts,
       .outputs = scratch + 2 * parts},
      context.stream.get());
}

void run(const Attention& attributes, const Invocation& invocation, CudaContext& context) {
  if (attributes.by_library) return run_cudnn(attributes, invocation, context);
  const Matrix q = matrix_of(invocation[Attention::kQ]);
  const Matrix k = matrix_of(invocation[Attention::kK]);
  const RangesRun ranges = ranges_run(attributes, invocation, q.rows, k.rows);
  if (attributes.splits > 0) return run_in_splits(attributes, ranges, invocation, context);
  invocation.note_decision("by_library", 0);
  invocation.note_decision("splits", 0);
  invocation.note_decision("few_queries", 0);
  find_ranges(ranges, context.stream.get());
  const Matrix v = matrix_of(invocation[Attention::kV]);
  const AttentionRun run{.shape = ranges.shape,
                         .keys = ranges.keys,
                         .queries = ranges.queries,
                         .q = q.operand,
                         .k = k.operand,
                         .v = v.operand,
                         .o = matrix_of(invocation[Attention::kO]).operand,
                         .lse = floats_of(invocation[Attention::kLse]),
                         .sinks = sinks_of(attributes, invocation)};
  if (!attributes.tensor_cores) {
    invocation.note_decision("tensor_cores", 0);
    return attention(run, context.stream.get());
  }
  invocation.note_decision("tensor_cores", 1);
  check_vectors({&q, &k, &v});
  attention_matrix(run, context.stream.get());
}

void run(const AttentionGrad& attributes, const Invocation& invocation, CudaContext& context) {
  if (attributes.by_library) return run_cudnn(attributes, invocation, context);
  const Matrix q = matrix_of(invocation[AttentionGrad::kQ]);
  const Matrix k = matrix_of(invocation[AttentionGrad::kK]);
  const RangesRun ranges = ranges_run(attributes, invocation, q.rows, k.rows);
  invocation.note_decision("by_library", 0);
  for (const char* decision :
       {"few_queries", "few_keys", "dense_q", "dense_k", "dense_v", "dense_gradients"})
    invocation.note_decision(decision, 0);
  find_ranges(ranges, context.stream.get());
  const Matrix d_o = matrix_of(invocation[AttentionGrad::kDO]);
  const Matrix v = matrix_of(invocation[AttentionGrad::kV]);
  const AttentionGradRun run{.shape = ranges.shape,
                             .keys = ranges.keys,
                             .queries = ranges.queries,
                             .d_o = d_o.operand,
                             .q = q.operand,
                             .k = k.operand,
                             .v = v.operand,
                             .o = matrix_of(invocation[AttentionGrad::kO]).operand,
                             .lse = floats_of(invocation[AttentionGrad::kLse]),
                             .delta = reinterpret_cast<float*>(ranges.queries + k.rows),
                             .dq = matrix_of(invocation[AttentionGrad::kDQ]).operand,
                             .dk = matrix_of(invocation[AttentionGrad::kDK]).operand,
                             .dv = matrix_of(invocation[AttentionGrad::kDV]).operand};
  if (!attributes.tensor_cores) {
    invocation.note_decision("tensor_cores", 0);
    return attention_grad(run, context.stream.get());
  }
  invocation.note_decision("tensor_cores", 1);
  check_vectors({&d_o, &q, &k, &v});
  attention_grad_matrix(run, context.stream.get());
}

}  // namespace

SNUG_CUDA_KIND(Attention, .prepare = prepare);
SNUG_CUDA_KIND(AttentionGrad, .prepare = prepare);

}  // namespace snug::backends::cuda
