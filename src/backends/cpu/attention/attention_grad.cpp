#include <memory>

#include "backends/cpu/attention/attention_segments.h"
#include "backends/cpu/kernels.h"
#include "base/error.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cpu {
namespace {

using program::AttentionGrad;

// Gradients of segments with at most this many queries or keys are computed in f32 whatever the
// operands' type: when a few weights make up a whole gradient, rounding them to bf16 in between
// would show in the result.
constexpr int64_t kFewGradQueries = 16;
constexpr int64_t kFewGradKeys = 64;

// The gradient of a relative position bias. A task, which is one key head of a segment, sums the
// gradients by distance in a table of its own and then adds them up into buckets; the sums of the
// segments are added in order. Takes no memory where this gradient is not wanted.
struct BiasSums {
  TableShape table;  // for the heads of one task
  int64_t segments = 0;
  int64_t heads = 0;
  int64_t buckets = 0;

  // The sizes follow from the shapes of q, the bounds and, where it is given, dbias.
  BiasSums(const AttentionGrad& grad, const TableShape& tables, int64_t segment_count,
           int64_t bucket_count) {
    if (!grad.bias_gradient) return;
    table = {grad.heads / grad.kv_heads, tables.reach};
    segments = segment_count;
    heads = grad.heads;
    buckets = bucket_count;
  }

  int64_t floats() const { return segments * heads * buckets; }
  int64_t bytes() const { return whole_lines(floats() * int64_t{sizeof(float)}); }
  bool are_wanted() const { return table.heads > 0; }

  // Adds the tables of a task, whose first head is `head`, to `sums` (segments, heads, buckets).
  void add_task(const DistanceBiases& prepared, const float* tables, int64_t segment, int64_t head,
                float* sums) const {
    for (int64_t i = 0; i < table.heads; ++i)
      add_to_buckets(table, prepared, table.at(tables, i).zero,
                     sums + (segment * heads + head + i) * buckets);
  }

  void store(const float* sums, const Rows& dbias) const {
    for (int64_t bucket = 0; bucket < buckets; ++bucket)
      for (int64_t head = 0; head < heads; ++head) {
        double sum = 0;
        for (int64_t segment = 0; segment < segments; ++segment)
          sum += static_cast<double>(sums[(segment * heads + head) * buckets + bucket]);
        set_value(dbias.at(bucket, head), dbias.element, 0, static_cast<float>(sum));
      }
  }
};

// The operands of a backward pass.
struct BackwardTensors {
  BackwardTensors(const AttentionGrad& grad, const Invocation& invocation)
      : biases(grad, invocation),
        d_o(rows_of(invocation[AttentionGrad::kDO])),
        q(rows_of(invocation[AttentionGrad::kQ])),
        k(rows_of(invocation[AttentionGrad::kK])),
        v(rows_of(invocation[AttentionGrad::kV])),
        o(rows_of(invocation[AttentionGrad::kO])),
        lse(rows_of(invocation[AttentionGrad::kLse])),
        dq(rows_of(invocation[AttentionGrad::kDQ])),
        dk(rows_of(invocation[AttentionGrad::kDK])),
        dv(rows_of(invocation[AttentionGrad::kDV])) {}
  ScoreBiases biases;
  Rows d_o, q, k, v, o, lse, dq, dk, dv;

  AttentionSegmentGrad segment(const AttentionGrad& grad, Range queries, Range keys,
                               int64_t kv_head) const {
    const int64_t d = grad.head_dim;
    const int64_t head = kv_head * (grad.heads / grad.kv_heads);
    const auto of_queries = [&](const Rows& rows) {
      return HeadRows{rows.at(queries.begin, head * d), rows.stride};
    };
    const auto of_keys = [&](const Rows& rows) {
      return HeadRows{rows.at(keys.begin, kv_head * d), rows.stride};
    };
    return {.form = form_of(grad, queries, keys, biases, head),
            .d_o = of_queries(d_o),
            .q = of_queries(q),
            .k = of_keys(k),
            .v = of_keys(v),
            .o = of_queries(o),
            .lse = reinterpret_cast<const float*>(lse.at(head, queries.begin)),
            .lse_stride = lse.stride,
            .dq = dq.at(queries.begin, head * d),
            .dk = dk.at(keys.begin, kv_head * d),
            .dv = dv.at(keys.begin, kv_head * d),
            .dq_stride = dq.stride,
            .dk_stride = dk.stride,
            .dv_stride = dv.stride,
            .scratch = nullptr,
            .in_f32 = false,
            .d_biases = {}};
  }
};

bool supports(const AttentionGrad&, const program::OperationView& view, const CpuContext&) {
  using Grad = AttentionGrad;
  return of_one_type(view,
                     {Grad::kDO, Grad::kK, Grad::kV, Grad::kO, Grad::kDQ, Grad::kDK, Grad::kDV});
}

AttentionGrad decide(const AttentionGrad& grad, const program::OperationView&, const CpuContext&) {
  AttentionGrad decided = grad;
  decided.kernel.few_queries = kFewGradQueries;
  decided.kernel.few_keys = kFewGradKeys;
  return decided;
}

std::unique_ptr<Prepared> prepare(const AttentionGrad& grad, const program::OperationView& view,
                                  CpuContext&) {
  SNUG_CHECK(grad.kernel.by == program::AttentionBy::plain && !program::copies_operands(grad),
             "an attention gradient by other kernels than those of the cpu backend");
  return prepare_biases(grad, view);
}

// The bias tables and the sums of the tasks, then for each thread a table of gradients by distance
// and the kernel's scratch.
int64_t workspace_bytes(const AttentionGrad& grad, const program::OperationView& view,
                        const CpuContext& context) {
  const program::Tensor& q = view[AttentionGrad::kQ];
  const int64_t keys = view[AttentionGrad::kK].shape[0];
  const TableShape tables = table_shape_of(grad, q.shape[0], keys);
  const BiasSums sums(grad, tables, view[AttentionGrad::kQBounds].shape[0],
                      grad.bias_gradient ? view[AttentionGrad::kDBias].shape[0] : 0);
  const int64_t scratch = context.kernels.attention_grad->scratch_bytes[element_of(q.dtype)](
      grad.heads / grad.kv_heads, grad.head_dim, keys);
  return tables.bytes() + sums.bytes() + context.threads * (sums.table.bytes() + scratch);
}

void run(const AttentionGrad& grad, const Invocation& invocation, CpuContext& context) {
  const BackwardTensors tensors(grad, invocation);
  const Element element = tensors.q.element;
  const Segments segments(grad, invocation);
  segments.for_each_query_gap(tensors.dq.rows, [&](Range gap) { zero(tensors.dq, gap); });
  segments.for_each_key_gap(tensors.dk.rows, [&](Range gap) {
    zero(tensors.dk, gap);
    zero(tensors.dv, gap);
  });
  const AttentionGradKernels& kernels = *context.kernels.attention_grad;
  const int64_t group = grad.heads / grad.kv_heads;
  const TableShape& tables = tensors.biases.shape();
  const Rows dbias = grad.bias_gradient ? rows_of(invocation[AttentionGrad::kDBias]) : Rows{};
  const BiasSums bias(grad, tables, segments.count(), dbias.rows);
  auto* bias_sums = reinterpret_cast<float*>(invocation.workspace.data + tables.bytes());
  std::fill_n(bias_sums, bias.floats(), 0.0F);
  std::byte* threads = invocation.workspace.data + tables.bytes() + bias.bytes();
  const int64_t bytes_of_thread =
      bias.table.bytes() + kernels.scratch_bytes[element](group, grad.head_dim, tensors.k.rows);
  FewQueries few(invocation, grad.kv_heads);
  parallel_for(segments.count() * grad.kv_heads, [&](int64_t task) {
    const int64_t index = task / grad.kv_heads;
    const int64_t kv_head = task % grad.kv_heads;
    const Range queries = segments.queries(index);
    const Range keys = segments.keys(index);
    if (queries.size() == 0 && keys.size() == 0) return;
    AttentionSegmentGrad segment = tensors.segment(grad, queries, keys, kv_head);
    std::byte* mine = threads + current_thread() * bytes_of_thread;
    auto* table = reinterpret_cast<float*>(mine);
    std::fill(mine, mine + bias.table.bytes(), std::byte{0});
    segment.d_biases = bias.table.at(table);
    segment.scratch = mine + bias.table.bytes();
    segment.in_f32 = has_few(grad, queries.size(), keys.size());
    if (segment.in_f32) few.add(queries.size());
    kernels.differentiate[element](segment);
    if (bias.are_wanted())
      bias.add_task(prepared_biases(invocation), table, index, kv_head * group, bias_sums);
  });
  if (grad.kernel.few_queries > 0) few.note();
  if (bias.are_wanted()) bias.store(bias_sums, dbias);
}

}  // namespace

SNUG_CPU_KIND(AttentionGrad, .supports = supports, .decide = decide,
              .workspace_bytes = workspace_bytes, .prepare = prepare);

}  // namespace snug::backends::cpu
