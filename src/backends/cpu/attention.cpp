#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <memory>

#include "backends/cpu/alibi_slopes.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/note_extent.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

using program::Attention;
using program::AttentionGrad;

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return std::max<int64_t>(0, end - begin); }
};

// The segments of an operation, as its bounds give them.
class Segments {
 public:
  template <typename Attributes>
  Segments(const Attributes& attention, const Invocation& invocation)
      : q_bounds_(integers_in(invocation, Attributes::kQBounds)),
        k_bounds_(integers_in(invocation, Attributes::kKBounds)) {
    note_segments(attention, invocation);
  }

  int64_t count() const { return program::segment_count(q_bounds_); }
  Range queries(int64_t index) const { return at(q_bounds_, index); }
  Range keys(int64_t index) const { return at(k_bounds_, index); }

  // Calls f(range) for the rows that no segment covers; for all rows where segments are out of
  // order.
  template <typename F>
  void for_each_query_gap(int64_t rows, F&& f) const {
    for_each_gap(q_bounds_, rows, f);
  }
  template <typename F>
  void for_each_key_gap(int64_t rows, F&& f) const {
    for_each_gap(k_bounds_, rows, f);
  }

 private:
  static Range at(std::span<const int32_t> bounds, int64_t index) {
    const auto begin = static_cast<size_t>(2 * index);
    return {bounds[begin], bounds[begin + 1]};
  }
  template <typename F>
  void for_each_gap(std::span<const int32_t> bounds, int64_t rows, F&& f) const {
    int64_t covered = 0;
    for (int64_t index = 0; index < count(); ++index) {
      const Range range = at(bounds, index);
      if (range.size() == 0) continue;
      if (range.begin < covered) return f(Range{0, rows});
      if (range.begin > covered) f(Range{covered, range.begin});
      covered = range.end;
    }
    if (covered < rows) f(Range{covered, rows});
  }

  std::span<const int32_t> q_bounds_;
  std::span<const int32_t> k_bounds_;
};

void zero(const Rows& rows, Range range) {
  constexpr int64_t kRowsPerTask = 64;
  parallel_ranges(range.size(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = range.begin + begin; row < range.begin + end; ++row)
      std::fill(rows.at(row), rows.at(row, rows.columns), std::byte{0});
  });
}

// Segments of at most this many queries are read straight from where their keys lie.
constexpr int64_t kFewQueries = 4;

// Gradients of segments of at most so many queries or keys are computed in f32 whatever their type:
// where a handful of weights make up all of a gradient, rounding them to bf16 on the way would show
// in the result.
constexpr int64_t kFewGradQueries = 16;
constexpr int64_t kFewGradKeys = 64;

// Queries that tasks, one for each key head and some queries of a segment, found to be of a segment
// of few. Counted only where a trace wants it.
class FewQueries {
 public:
  FewQueries(const Invocation& invocation, int64_t kv_heads)
      : invocation_(invocation), kv_heads_(kv_heads) {}
  void add(int64_t queries) {
    if (invocation_.trace != nullptr) sum_.fetch_add(queries, std::memory_order_relaxed);
  }
  void note() const { invocation_.note_piece(sum_.load() / kv_heads_); }

 private:
  const Invocation& invocation_;
  int64_t kv_heads_;
  std::atomic<int64_t> sum_ = 0;
};

template <typename Attributes>
AttentionForm form_of(const Attributes& attention, Range queries, Range keys, const float* slopes) {
  return {.head_dim = attention.head_dim,
          .group = attention.heads / attention.kv_heads,
          .scale = attention.scale,
          .causal = attention.causal,
          .window = attention.window,
          .queries = queries.size(),
          .keys = keys.size(),
          .softcap = attention.softcap,
          .slopes = slopes};
}

// Whether q and these operands have one type.
template <typename Attributes>
bool of_one_type(const program::OperationView& view,
                 std::initializer_list<program::Operand<Attributes>> operands) {
  const base::DType type = view[Attributes::kQ].dtype;
  return std::all_of(operands.begin(), operands.end(),
                     [&](const auto& operand) { return view[operand].dtype == type; });
}

// One key head of one segment, and some of its queries.
struct Task {
  int64_t segment = 0;
  int64_t kv_head = 0;
  Range queries;  // counted within the segment
};

// Work of the forward pass, cut the same way whatever the number of threads.
class ForwardTasks {
 public:
  ForwardTasks(const Attention& attention, const Segments& segments, int64_t queries_of_tile)
      : attention_(attention), segments_(segments), queries_of_tile_(queries_of_tile) {}

  int64_t count() const {
    int64_t tasks = 0;
    for (int64_t index = 0; index < segments_.count(); ++index) tasks += count_of(index);
    return tasks;
  }

  // Later queries first: causal ones see more keys, and what takes longest should not start last.
  Task at(int64_t number) const {
    int64_t index = 0;
    for (; number >= count_of(index); ++index) number -= count_of(index);
    const int64_t queries = segments_.queries(index).size();
    const int64_t tile = tiles_of(index) - 1 - number / attention_.kv_heads;
    return {index,
            number % attention_.kv_heads,
            {tile * queries_of_tile_, std::min(queries, (tile + 1) * queries_of_tile_)}};
  }

 private:
  int64_t tiles_of(int64_t index) const {
    return ceil_div(segments_.queries(index).size(), queries_of_tile_);
  }
  int64_t count_of(int64_t index) const { return tiles_of(index) * attention_.kv_heads; }

  const Attention& attention_;
  const Segments& segments_;
  int64_t queries_of_tile_;
};

bool supports(const Attention& attention, const program::OperationView& view, const CpuContext&) {
  return !attention.relative_bias &&
         of_one_type(view, {Attention::kK, Attention::kV, Attention::kO}) &&
         (!attention.sinks || of_one_type(view, {Attention::kSinks}));
}

Attention decide(const Attention& attention, const program::OperationView&, const CpuContext&) {
  Attention decided = attention;
  decided.few_queries = attention.head_dim <= kLargestHeadDim ? kFewQueries : 0;
  return decided;
}

// Decisions that are not this backend's are refused.
std::unique_ptr<Prepared> prepare(const Attention& attention, const program::OperationView&,
                                  CpuContext&) {
  SNUG_CHECK(!attention.by_library && attention.splits == 0 && !attention.tensor_cores,
             "an attention by other kernels than those of the cpu backend");
  SNUG_CHECK(attention.few_queries == 0 || attention.head_dim <= kLargestHeadDim,
             "heads of {} elements for the kernel of few queries", attention.head_dim);
  return prepare_slopes(attention);
}

int64_t workspace_bytes(const Attention& attention, const program::OperationView& view,
                        const CpuContext& context) {
  const program::Tensor& q = view[Attention::kQ];
  if (q.shape[0] <= attention.few_queries) return 0;
  const int64_t group = attention.heads / attention.kv_heads;
  return context.threads * context.kernels.attention_tile->scratch_bytes[element_of(q.dtype)](
                               group, attention.head_dim);
}

// The operands of a forward pass.
struct ForwardTensors {
  ForwardTensors(const Attention& attention, const Invocation& invocation)
      : slopes(slopes_of(attention, invocation)),
        q(rows_of(invocation[Attention::kQ])),
        k(rows_of(invocation[Attention::kK])),
        v(rows_of(invocation[Attention::kV])),
        o(rows_of(invocation[Attention::kO])),
        lse(rows_of(invocation[Attention::kLse])),
        sinks(attention.sinks ? one_row_of(invocation[Attention::kSinks]) : Rows{}) {}
  const float* slopes;  // of all heads; null without ALiBi
  Rows q, k, v, o, lse;
  Rows sinks;  // of all heads, in a row; without data where there are none

  void zero_queries(Range gap) const {
    zero(o, gap);
    for (int64_t head = 0; head < lse.rows; ++head)
      std::fill(lse.at(head, gap.begin), lse.at(head, gap.end), std::byte{0});
  }

  AttentionTile tile(const Attention& attention, const Segments& segments, const Task& task) const {
    const Range queries = segments.queries(task.segment);
    const Range keys = segments.keys(task.segment);
    const int64_t d = attention.head_dim;
    const int64_t head = task.kv_head * (attention.heads / attention.kv_heads);
    return {.form = form_of(attention, queries, keys, slopes_from(slopes, head)),
            .begin = task.queries.begin,
            .end = task.queries.end,
            .q = {q.at(queries.begin, head * d), q.stride},
            .k = {k.at(keys.begin, task.kv_head * d), k.stride},
            .v = {v.at(keys.begin, task.kv_head * d), v.stride},
            .o = o.at(queries.begin, head * d),
            .o_stride = o.stride,
            .lse = reinterpret_cast<float*>(lse.at(head, queries.begin)),
            .lse_stride = lse.stride,
            .scratch = nullptr,
            .sinks = sinks.data == nullptr ? nullptr : sinks.at(0, head)};
  }
};

// The operands of a backward pass.
struct BackwardTensors {
  BackwardTensors(const AttentionGrad& grad, const Invocation& invocation)
      : slopes(slopes_of(grad, invocation)),
        d_o(rows_of(invocation[AttentionGrad::kDO])),
        q(rows_of(invocation[AttentionGrad::kQ])),
        k(rows_of(invocation[AttentionGrad::kK])),
        v(rows_of(invocation[AttentionGrad::kV])),
        o(rows_of(invocation[AttentionGrad::kO])),
        lse(rows_of(invocation[AttentionGrad::kLse])),
        dq(rows_of(invocation[AttentionGrad::kDQ])),
        dk(rows_of(invocation[AttentionGrad::kDK])),
        dv(rows_of(invocation[AttentionGrad::kDV])) {}
  const float* slopes;  // of all heads; null without ALiBi
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
    return {.form = form_of(grad, queries, keys, slopes_from(slopes, head)),
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
            .in_f32 = false};
  }
};

void run(const Attention& attention, const Invocation& invocation, CpuContext& context) {
  SNUG_CHECK(attention.scale > 0, "attention's scale is {}", attention.scale);
  invocation.note_decision("by_library", 0);
  invocation.note_decision("splits", 0);
  invocation.note_decision("tensor_cores", 0);
  invocation.note_decision("few_queries", attention.few_queries);
  const ForwardTensors tensors(attention, invocation);
  const Element element = tensors.q.element;
  const Segments segments(attention, invocation);
  segments.for_each_query_gap(tensors.q.rows, [&](Range gap) { tensors.zero_queries(gap); });
  const AttentionTileKernels& kernels = *context.kernels.attention_tile;
  const int64_t group = attention.heads / attention.kv_heads;
  const int64_t scratch_bytes = kernels.scratch_bytes[element](group, attention.head_dim);
  const ForwardTasks tasks(attention, segments, kernels.queries(group));
  FewQueries few(invocation, attention.kv_heads);
  parallel_for(tasks.count(), [&](int64_t number) {
    AttentionTile tile = tensors.tile(attention, segments, tasks.at(number));
    if (has_few(attention, tile.form.queries, tile.form.keys)) {
      few.add(tile.end - tile.begin);
      context.kernels.attention_few->attend[element](tile);
    } else {
      tile.scratch = invocation.workspace.data + current_thread() * scratch_bytes;
      kernels.attend[element](tile);
    }
  });
  if (attention.few_queries > 0) few.note();
}

bool supports(const AttentionGrad& grad, const program::OperationView& view, const CpuContext&) {
  using Grad = AttentionGrad;
  return !grad.relative_bias && of_one_type(view, {Grad::kDO, Grad::kK, Grad::kV, Grad::kO,
                                                   Grad::kDQ, Grad::kDK, Grad::kDV});
}

AttentionGrad decide(const AttentionGrad& grad, const program::OperationView&, const CpuContext&) {
  AttentionGrad decided = grad;
  decided.few_queries = kFewGradQueries;
  decided.few_keys = kFewGradKeys;
  return decided;
}

std::unique_ptr<Prepared> prepare(const AttentionGrad& grad, const program::OperationView&,
                                  CpuContext&) {
  SNUG_CHECK(!grad.by_library && !grad.tensor_cores && !program::copies_operands(grad),
             "an attention gradient by other kernels than those of the cpu backend");
  return prepare_slopes(grad);
}

int64_t workspace_bytes(const AttentionGrad& grad, const program::OperationView& view,
                        const CpuContext& context) {
  const Element element = element_of(view[AttentionGrad::kQ].dtype);
  const int64_t keys = view[AttentionGrad::kK].shape[0];
  return context.threads * context.kernels.attention_grad->scratch_bytes[element](
                               grad.heads / grad.kv_heads, grad.head_dim, keys);
}

void run(const AttentionGrad& grad, const Invocation& invocation, CpuContext& context) {
  invocation.note_decision("by_library", 0);
  invocation.note_decision("tensor_cores", 0);
  invocation.note_decision("few_queries", grad.few_queries);
  invocation.note_decision("few_keys", grad.few_keys);
  for (const char* decision : {"dense_q", "dense_k", "dense_v", "dense_gradients"})
    invocation.note_decision(decision, 0);
  const BackwardTensors tensors(grad, invocation);
  const Element element = tensors.q.element;
  const Segments segments(grad, invocation);
  segments.for_each_query_gap(tensors.dq.rows, [&](Range gap) { zero(tensors.dq, gap); });
  segments.for_each_key_gap(tensors.dk.rows, [&](Range gap) {
    zero(tensors.dk, gap);
    zero(tensors.dv, gap);
  });
  const AttentionGradKernels& kernels = *context.kernels.attention_grad;
  const int64_t scratch_bytes =
      kernels.scratch_bytes[element](grad.heads / grad.kv_heads, grad.head_dim, tensors.k.rows);
  FewQueries few(invocation, grad.kv_heads);
  parallel_for(segments.count() * grad.kv_heads, [&](int64_t task) {
    const Range queries = segments.queries(task / grad.kv_heads);
    const Range keys = segments.keys(task / grad.kv_heads);
    if (queries.size() == 0 && keys.size() == 0) return;
    AttentionSegmentGrad segment = tensors.segment(grad, queries, keys, task % grad.kv_heads);
    segment.scratch = invocation.workspace.data + current_thread() * scratch_bytes;
    segment.in_f32 = has_few(grad, queries.size(), keys.size());
    if (segment.in_f32) few.add(queries.size());
    kernels.differentiate[element](segment);
  });
  if (grad.few_queries > 0) few.note();
}

void run(const program::CacheWrite&, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[program::CacheWrite::kX]);
  const int32_t* slots = integers_of(invocation[program::CacheWrite::kSlots]);
  note_rows(invocation, program::CacheWrite::kSlots);
  const Rows cache = rows_of(invocation[program::CacheWrite::kCache]);
  const auto convert = context.kernels.elementwise->convert[x.element][cache.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      SNUG_CHECK(slots[t] < cache.rows, "slot {} of {}", slots[t], cache.rows);
      if (slots[t] >= 0) convert(x.at(t), cache.at(slots[t]), x.columns);
    }
  });
}

}  // namespace

SNUG_CPU_KIND(Attention, .supports = supports, .decide = decide, .workspace_bytes = workspace_bytes,
              .prepare = prepare);
SNUG_CPU_KIND(AttentionGrad, .supports = supports, .decide = decide,
              .workspace_bytes = workspace_bytes, .prepare = prepare);
SNUG_CPU_KIND(CacheWrite);

}  // namespace snug::backends::cpu
