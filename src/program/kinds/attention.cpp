#include "program/kinds/attention.h"

#include <algorithm>
#include <cmath>

#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

// Attention and AttentionGrad carry the same attributes.
template <typename Attributes>
void check_attributes(const Attributes& attention, ShapeRule& rule) {
  rule.require(attention.heads > 0 && attention.kv_heads > 0 && attention.head_dim > 0,
               "needs positive heads, kv_heads and head_dim");
  rule.require(attention.kv_heads > 0 && attention.heads % attention.kv_heads == 0,
               "has heads that are no multiple of kv_heads");
  rule.require(std::isfinite(attention.scale), "has a scale that is not finite");
  rule.require(attention.window >= 0, "has a negative window");
  rule.require(attention.segment_tokens >= 0, "has a negative segment_tokens");
}

// Of q, k, v and the bounds; `reads` is where q stands.
template <typename Attributes>
void check_inputs(const Attributes& attention, const OperationView& view, size_t reads,
                  ShapeRule& rule) {
  const Tensor& q = view.read(reads);
  const Tensor& k = view.read(reads + 1);
  const Tensor& v = view.read(reads + 2);
  rule.rank({"q", q}, 2);
  rule.rank({"k", k}, 2);
  rule.shape({"q", q}, Shape{q.shape[0], attention.heads * attention.head_dim});
  rule.shape({"k", k}, Shape{k.shape[0], attention.kv_heads * attention.head_dim});
  rule.shape({"v", v}, k.shape);
  rule.same_type({{"q", q}, {"k", k}, {"v", v}});
  const Tensor& q_bounds = view.read(view.operation.reads.size() - 2);
  const Tensor& k_bounds = view.read(view.operation.reads.size() - 1);
  rule.rank({"q_bounds", q_bounds}, 2);
  rule.index({"q_bounds", q_bounds}, Shape{q_bounds.shape[0], 2});
  rule.index({"k_bounds", k_bounds}, q_bounds.shape);
}

// Sum of min(v, cap) over `count` numbers first, first + 1, ...
double capped_sum(double first, double count, double cap) {
  const double below = std::clamp(cap - first + 1, 0.0, count);
  return below * first + below * (below - 1) / 2 + (count - below) * cap;
}

// What the bounds of one operation are taken to hold.
struct Segments {
  double count = 0;
  double queries = 0;  // of one segment
  double keys = 0;     // of one segment
};

// Where queries and keys are as many, the rows of a micro-batch cut into segments of the load's
// mean length. Else generation: each segment has its share of the queries, and as many keys as the
// load says or as fit.
Segments segments_of(const Tensor& q, const Tensor& k, const Tensor& bounds, const Load& load) {
  const auto q_tokens = static_cast<double>(q.shape[0]);
  const auto k_tokens = static_cast<double>(k.shape[0]);
  if (q_tokens == 0) return {};
  if (q_tokens == k_tokens) {
    double length = load.segment_tokens;
    if (length <= 0) length = static_cast<double>(load.row_tokens);
    if (length <= 0) length = q_tokens;
    length = std::min(length, q_tokens);
    return {q_tokens / length, length, length};
  }
  const double count = std::max(1.0, static_cast<double>(bounds.shape[0]));
  const double queries = q_tokens / count;
  const double capacity = k_tokens / count;
  const double keys = load.segment_tokens > 0 ? std::min(load.segment_tokens, capacity) : capacity;
  return {count, queries, std::max(keys, std::min(queries, capacity))};
}

// Query-key pairs of one segment that are not masked. Query i of n (from 0) sees the keys up to
// i + keys - n, or all; a window keeps the last `window` of those up to its diagonal.
double visible_pairs(const Segments& segments, bool causal, int64_t window) {
  const double n = segments.queries;
  const double keys = segments.keys;
  const auto width = static_cast<double>(window);
  if (causal) return capped_sum(keys - n + 1, n, window > 0 ? width : keys);
  if (window == 0) return n * keys;
  return capped_sum(width, n, keys);
}

template <typename Attributes>
double score_flops(const Attributes& attention, const Segments& segments) {
  const double pairs = visible_pairs(segments, attention.causal, attention.window);
  const auto width = static_cast<double>(attention.heads * attention.head_dim);
  return 4.0 * segments.count * pairs * width;  // q k^T and p v, two operations a term
}

// Keys and values are read where segments lie and a window reaches; the rest of a cache is not.
double bytes_of(const Attention& attention, const OperationView& view, const Segments& segments) {
  const Tensor& k = view.read(1);
  const auto whole = static_cast<double>(k.bytes());
  double keys = segments.keys;
  if (attention.causal && attention.window > 0)
    keys = std::min(keys, segments.queries + static_cast<double>(attention.window) - 1);
  return operand_bytes(view) - 2.0 * (whole - row_bytes(k, segments.count * keys));
}

}  // namespace

std::string shape_error(const Attention& attention, const OperationView& view) {
  ShapeRule rule(view);
  check_attributes(attention, rule);
  if (!rule.counts(5, 2)) return rule.error();
  check_inputs(attention, view, 0, rule);
  const Tensor& q = view.read(0);
  rule.shape({"o", view.write(0)}, q.shape);
  rule.mixed_types({{"q", q}, {"o", view.write(0)}});
  rule.measure({"lse", view.write(1)}, Shape{attention.heads, q.shape[0]});
  return rule.error();
}

std::string shape_error(const AttentionGrad& attention, const OperationView& view) {
  ShapeRule rule(view);
  check_attributes(attention, rule);
  if (!rule.counts(8, 3)) return rule.error();
  check_inputs(attention, view, 1, rule);
  const Tensor& q = view.read(1);
  const Tensor& k = view.read(2);
  rule.shape({"do", view.read(0)}, q.shape);
  rule.shape({"o", view.read(4)}, q.shape);
  rule.measure({"lse", view.read(5)}, Shape{attention.heads, q.shape[0]});
  rule.shape({"dq", view.write(0)}, q.shape);
  rule.shape({"dk", view.write(1)}, k.shape);
  rule.shape({"dv", view.write(2)}, k.shape);
  rule.mixed_types({{"q", q},
                    {"do", view.read(0)},
                    {"o", view.read(4)},
                    {"dq", view.write(0)},
                    {"dk", view.write(1)},
                    {"dv", view.write(2)}});
  return rule.error();
}

std::string shape_error(const CacheWrite&, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(2, 0, 1)) return rule.error();
  const Tensor& x = view.read(0);
  const Tensor& cache = view.update(0);
  rule.rank({"x", x}, 2);
  rule.index({"slots", view.read(1)}, Shape{x.shape[0]});
  rule.rank({"cache", cache}, 2);
  rule.shape({"cache", cache}, Shape{cache.shape[0], x.shape[1]});
  rule.same_type({{"x", x}, {"cache", cache}});
  return rule.error();
}

Cost cost(const Attention& attention, const OperationView& view, const Load& load) {
  const Tensor& k = view.read(1);
  const Segments segments = segments_of(view.read(0), k, view.read(3), load);
  return {score_flops(attention, segments), bytes_of(attention, view, segments)};
}

// Five products where the forward pass has two: the scores again, dp, dq, dk and dv.
Cost cost(const AttentionGrad& attention, const OperationView& view, const Load& load) {
  const Tensor& k = view.read(2);
  const Segments segments = segments_of(view.read(1), k, view.read(6), load);
  return {2.5 * score_flops(attention, segments), operand_bytes(view)};
}

// Rows are read once and written once.
Cost cost(const CacheWrite&, const OperationView& view, const Load&) {
  return {0, static_cast<double>(2 * view.read(0).bytes() + view.read(1).bytes())};
}

void differentiate(const Attention& attention, const Operation& operation, Tape& tape) {
  const TensorId d_o = tape.gradient(operation.writes[0]);
  const auto& reads = operation.reads;  // q, k, v, q_bounds, k_bounds
  if (d_o == kNone || !(tape.wants(reads[0]) || tape.wants(reads[1]) || tape.wants(reads[2])))
    return;
  const auto gradient_of = [&](size_t read, const char* suffix) {
    if (tape.wants(reads[read])) return tape.contribute(reads[read]);
    const Tensor input = tape.program().tensor(reads[read]);  // a copy: the table grows
    return tape.temporary(suffix, input.shape, input.dtype);
  };
  const TensorId dq = gradient_of(0, "dq");
  const TensorId dk = gradient_of(1, "dk");
  const TensorId dv = gradient_of(2, "dv");
  AttentionGrad grad;
  grad.heads = attention.heads;
  grad.kv_heads = attention.kv_heads;
  grad.head_dim = attention.head_dim;
  grad.scale = attention.scale;
  grad.causal = attention.causal;
  grad.window = attention.window;
  grad.segment_tokens = attention.segment_tokens;
  grad.deterministic = attention.deterministic;
  const TensorId o = operation.writes[0];
  const TensorId lse = operation.writes[1];
  tape.emit(grad, {d_o, reads[0], reads[1], reads[2], o, lse, reads[3], reads[4]}, {dq, dk, dv});
}

}  // namespace snug::program
