// Shared by both directions of attention: the segments of an operation, and the arguments of
// kernels for one segment.
#pragma once

#include <algorithm>
#include <atomic>
#include <initializer_list>

#include "backends/cpu/attention/distance_biases.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/note_extent.h"

namespace snug::backends::cpu {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return std::max<int64_t>(0, end - begin); }
};

// The segments of an operation, read from its bounds.
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

  // Calls f(range) for each range of rows that no segment covers, or for all rows where the
  // segments are not in order.
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

inline void zero(const Rows& rows, Range range) {
  constexpr int64_t kRowsPerTask = 64;
  parallel_ranges(range.size(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = range.begin + begin; row < range.begin + end; ++row)
      std::fill(rows.at(row), rows.at(row, rows.columns), std::byte{0});
  });
}

// Counts queries in segments with few queries, for the trace only. Tasks report them: one task for
// each key head and range of queries.
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

// The biases that an operation adds to scores by distance. The tables are at the beginning of its
// workspace.
class ScoreBiases {
 public:
  template <typename Attributes>
  ScoreBiases(const Attributes& attention, const Invocation& invocation)
      : shape_(table_shape_of(attention, invocation[Attributes::kQ].shape[0],
                              most_keys(attention, invocation))),
        slopes_(slopes_of(attention, invocation)) {
    if (!attention.relative_bias) return;
    tables_ = reinterpret_cast<float*>(invocation.workspace.data);
    make_tables(shape_, prepared_biases(invocation), invocation[Attributes::kBias], tables_);
  }

  const TableShape& shape() const { return shape_; }
  // The slopes of the heads, starting at `head`.
  const float* slopes(int64_t head) const { return slopes_ == nullptr ? nullptr : slopes_ + head; }
  DistanceTable<const float> table(int64_t head) const {
    return shape_.at<const float>(tables_, head);
  }

 private:
  TableShape shape_;
  const float* slopes_;  // for all heads; null without ALiBi
  float* tables_ = nullptr;
};

// The form for the key head whose first query head is `head`.
template <typename Attributes>
AttentionForm form_of(const Attributes& attention, Range queries, Range keys,
                      const ScoreBiases& biases, int64_t head) {
  return {.head_dim = attention.head_dim,
          .group = attention.heads / attention.kv_heads,
          .scale = attention.scale,
          .causal = attention.causal,
          .window = attention.window,
          .queries = queries.size(),
          .keys = keys.size(),
          .softcap = attention.softcap,
          .slopes = biases.slopes(head),
          .biases = biases.table(head)};
}

// Whether q and these operands have the same type.
template <typename Attributes>
bool of_one_type(const program::OperationView& view,
                 std::initializer_list<program::Operand<Attributes>> operands) {
  const base::DType type = view[Attributes::kQ].dtype;
  return std::all_of(operands.begin(), operands.end(),
                     [&](const auto& operand) { return view[operand].dtype == type; });
}

}  // namespace snug::backends::cpu
