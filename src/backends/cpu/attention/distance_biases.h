// What attention adds to scores by the distance between key and query: ALiBi slopes, which are
// computed once, and a relative position bias, from which each run makes a table for every head
// (DistanceTable in kernels/attention.h). The tables are in the operation's workspace.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cpu/attention/kernels/attention.h"
#include "backends/cpu/parallel.h"
#include "backends/invocation.h"
#include "base/error.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cpu {

struct DistanceBiases : Prepared {
  std::vector<float> slopes;     // one per head; empty: none
  std::vector<int32_t> buckets;  // for each entry of a table, the row of the bias; empty: none
};

// The tables of all heads, one after another; zero bytes without a bias.
struct TableShape {
  int64_t heads = 0;
  int64_t reach = 0;

  int64_t places() const { return 2 * distance_table_side(reach) + 1; }
  int64_t step() const { return round_up(places(), 16); }
  int64_t bytes() const { return heads * step() * int64_t{sizeof(float)}; }
  template <typename T>
  DistanceTable<T> at(T* first, int64_t head = 0) const {
    if (heads == 0) return {nullptr, 0, 0};
    return {first + head * step() + distance_table_side(reach), step(), reach};
  }
};

// Every distance is smaller than the number of tokens, and distances beyond max_distance share one
// bucket.
template <typename Attributes>
TableShape table_shape_of(const Attributes& attention, int64_t q_tokens, int64_t k_tokens) {
  if (!attention.relative_bias) return {};
  return {attention.heads, std::min(attention.max_distance, std::max(q_tokens, k_tokens))};
}

// The attributes of an operation that determine its biases.
struct BiasForm {
  int64_t heads = 0;
  bool causal = true;
  float alibi_scale = 0.0F;
  int64_t buckets = 0;
  int64_t max_distance = 0;
  TableShape table;
};
// Null where nothing is added to scores.
std::unique_ptr<Prepared> prepare_biases(const BiasForm& form);

template <typename Attributes>
std::unique_ptr<Prepared> prepare_biases(const Attributes& attention,
                                         const program::OperationView& view) {
  const int64_t q_tokens = view[Attributes::kQ].shape[0];
  const int64_t k_tokens = most_keys(attention, view);
  return prepare_biases(
      BiasForm{.heads = attention.heads,
               .causal = attention.causal,
               .alibi_scale = attention.alibi_scale,
               .buckets = attention.relative_bias ? view[Attributes::kBias].shape[0] : 0,
               .max_distance = attention.max_distance,
               .table = table_shape_of(attention, q_tokens, k_tokens)});
}

inline const DistanceBiases& prepared_biases(const Invocation& invocation) {
  SNUG_CHECK(invocation.prepared != nullptr, "an attention with biases that was not prepared");
  return static_cast<const DistanceBiases&>(*invocation.prepared);
}

// The slopes of all heads; null without ALiBi.
template <typename Attributes>
const float* slopes_of(const Attributes& attention, const Invocation& invocation) {
  if (attention.alibi_scale == 0.0F) return nullptr;
  return prepared_biases(invocation).slopes.data();
}

// Fills the tables with the bias (buckets, heads) of each distance, multiplied by log2(e).
void make_tables(const TableShape& shape, const DistanceBiases& prepared, const Buffer& bias,
                 float* tables);

// Adds one head's sums by distance to the sums of their buckets.
void add_to_buckets(const TableShape& shape, const DistanceBiases& prepared, const float* table,
                    float* buckets);

}  // namespace snug::backends::cpu
