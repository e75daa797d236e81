#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return std::max<int64_t>(0, end - begin); }
};

// One segment: its queries, its keys, and which see which.
struct Segment {
  Range queries;
  Range keys;
  bool causal = true;
  int64_t window = 0;

  // Keys that query `i`, counted within the segment, sees; counted within the segment too.
  Range seen_by(int64_t i) const {
    Range seen{0, keys.size()};
    const int64_t last = i + keys.size() - queries.size();
    if (causal) seen.end = std::min(seen.end, last + 1);
    if (window > 0) seen.begin = std::max(seen.begin, last - window + 1);
    return seen;
  }
};

template <typename Attributes>
Segment segment_at(const Attributes& attention, const int32_t* q_bounds, const int32_t* k_bounds,
                   int64_t index) {
  return {.queries = {q_bounds[2 * index], q_bounds[2 * index + 1]},
          .keys = {k_bounds[2 * index], k_bounds[2 * index + 1]},
          .causal = attention.causal,
          .window = attention.window};
}

void zero(const Rows& rows, Range range) {
  parallel_ranges(range.size(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = range.begin + begin; row < range.begin + end; ++row)
      std::fill(rows.at(row), rows.at(row, rows.columns), std::byte{0});
  });
}

// Zeroes the rows that no segment covers; all of them where the segments are out of order.
void zero_gaps(const Rows& rows, const int32_t* bounds, int64_t segments) {
  int64_t covered = 0;
  for (int64_t index = 0; index < segments; ++index) {
    const Range range{bounds[2 * index], bounds[2 * index + 1]};
    if (range.size() == 0) continue;
    if (range.begin < covered) return zero(rows, {0, rows.rows});
    zero(rows, {covered, range.begin});
    covered = range.end;
  }
  zero(rows, {covered, rows.rows});
}

// The columns of one head, from a row on.
HeadRows head_rows(const Rows& rows, int64_t first_row, int64_t head, int64_t head_dim) {
  return {rows.at(first_row, head * head_dim), rows.stride};
}

template <typename Attributes>
bool fits(const Attributes& attention, const program::OperationView& view, size_t reads,
          size_t writes) {
  bool same = attention.head_dim <= kLargestHeadDim;
  for (size_t i = 0; i < reads; ++i) same = same && view.read(i).dtype == view.read(0).dtype;
  for (size_t i = 0; i < writes; ++i) same = same && view.write(i).dtype == view.read(0).dtype;
  return same;
}

}  // namespace

bool supports(const program::Attention& attention, const program::OperationView& view,
              const CpuContext&) {
  return fits(attention, view, 3, 1);
}

void run(const program::Attention& attention, const Invocation& invocation, CpuContext& context) {
  const Rows q = rows_of(invocation.reads[0]);
  const Rows k = rows_of(invocation.reads[1]);
  const Rows v = rows_of(invocation.reads[2]);
  const int32_t* q_bounds = integers_of(invocation.reads[3]);
  const int32_t* k_bounds = integers_of(invocation.reads[4]);
  const int64_t segments = invocation.reads[3].shape[0];
  const Rows o = rows_of(invocation.writes[0]);
  auto* lse = invocation.writes[1].as<float>();
  const int64_t tokens = q.rows;
  zero(o, {0, tokens});
  std::fill(lse, lse + attention.heads * tokens, 0.0F);
  const auto attend = context.kernels.attention->attend_query[q.element];
  const int64_t d = attention.head_dim;
  for (int64_t index = 0; index < segments; ++index) {
    const Segment segment = segment_at(attention, q_bounds, k_bounds, index);
    parallel_for(segment.queries.size() * attention.heads, [&](int64_t task) {
      const int64_t i = task / attention.heads;
      const int64_t head = task % attention.heads;
      const int64_t kv_head = head / (attention.heads / attention.kv_heads);
      const int64_t row = segment.queries.begin + i;
      const Range seen = segment.seen_by(i);
      if (seen.size() == 0) return;
      attend({.q = q.at(row, head * d),
              .k = head_rows(k, segment.keys.begin, kv_head, d),
              .v = head_rows(v, segment.keys.begin, kv_head, d),
              .begin = seen.begin,
              .end = seen.end,
              .head_dim = d,
              .scale = attention.scale,
              .o = o.at(row, head * d),
              .lse = lse + head * tokens + row});
    });
  }
}

bool supports(const program::AttentionGrad& grad, const program::OperationView& view,
              const CpuContext&) {
  return fits(grad, view, 5, 3);
}

// dk and dv of one head in fp32, a thread.
int64_t workspace_bytes(const program::AttentionGrad& grad, const program::OperationView& view,
                        const CpuContext& context) {
  return context.threads * 2 * view.read(2).shape.rows() * grad.head_dim * int64_t{sizeof(float)};
}

void run(const program::AttentionGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows d_o = rows_of(invocation.reads[0]);
  const Rows q = rows_of(invocation.reads[1]);
  const Rows k = rows_of(invocation.reads[2]);
  const Rows v = rows_of(invocation.reads[3]);
  const Rows o = rows_of(invocation.reads[4]);
  const auto* lse = invocation.reads[5].as<const float>();
  const int32_t* q_bounds = integers_of(invocation.reads[6]);
  const int32_t* k_bounds = integers_of(invocation.reads[7]);
  const int64_t segments = invocation.reads[6].shape[0];
  const Rows dq = rows_of(invocation.writes[0]);
  const Rows dk = rows_of(invocation.writes[1]);
  const Rows dv = rows_of(invocation.writes[2]);
  const int64_t d = grad.head_dim;
  const int64_t group = grad.heads / grad.kv_heads;
  zero(dq, {0, dq.rows});
  zero_gaps(dk, k_bounds, segments);
  zero_gaps(dv, k_bounds, segments);
  const auto attend = context.kernels.attention->attend_query_grad[q.element];
  const auto convert = context.kernels.elementwise->convert[kF32][dk.element];
  parallel_for(segments * grad.kv_heads, [&](int64_t task) {
    const Segment segment = segment_at(grad, q_bounds, k_bounds, task / grad.kv_heads);
    const int64_t kv_head = task % grad.kv_heads;
    float* dk_sums = invocation.workspace.as<float>() + current_thread() * 2 * k.rows * d;
    float* dv_sums = dk_sums + k.rows * d;
    std::fill(dk_sums, dk_sums + segment.keys.size() * d, 0.0F);
    std::fill(dv_sums, dv_sums + segment.keys.size() * d, 0.0F);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head)
      for (int64_t i = 0; i < segment.queries.size(); ++i) {
        const int64_t row = segment.queries.begin + i;
        const Range seen = segment.seen_by(i);
        if (seen.size() == 0) continue;
        attend({.d_o = d_o.at(row, head * d),
                .q = q.at(row, head * d),
                .o = o.at(row, head * d),
                .k = head_rows(k, segment.keys.begin, kv_head, d),
                .v = head_rows(v, segment.keys.begin, kv_head, d),
                .begin = seen.begin,
                .end = seen.end,
                .head_dim = d,
                .scale = grad.scale,
                .lse = lse[head * q.rows + row],
                .dq = dq.at(row, head * d),
                .dk = dk_sums,
                .dv = dv_sums});
      }
    for (int64_t j = 0; j < segment.keys.size(); ++j) {
      convert(dk_sums + j * d, dk.at(segment.keys.begin + j, kv_head * d), d);
      convert(dv_sums + j * d, dv.at(segment.keys.begin + j, kv_head * d), d);
    }
  });
}

void run(const program::CacheWrite&, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation.reads[0]);
  const int32_t* slots = integers_of(invocation.reads[1]);
  const Rows cache = rows_of(invocation.updates[0]);
  const auto convert = context.kernels.elementwise->convert[x.element][cache.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      SNUG_CHECK(slots[t] < cache.rows, "slot {} of {}", slots[t], cache.rows);
      if (slots[t] >= 0) convert(x.at(t), cache.at(slots[t]), x.columns);
    }
  });
}

}  // namespace snug::backends::cpu
