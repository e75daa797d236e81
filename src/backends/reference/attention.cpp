// Attention row by row. Scores are recomputed wherever they are needed, so that each sum is written
// like its formula:
//   s_ij = scale q_i k_j,  p_ij = exp(s_ij - lse_i),  o_i = sum_j p_ij v_j,
//   dv_j = sum_i p_ij do_i,  ds_ij = p_ij (do_i v_j - do_i o_i),
//   dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i.
// With a softcap c, p_ij uses c tanh(s_ij / c) instead of s_ij, and ds_ij in dq and dk is
// multiplied by the derivative of that. ALiBi has no gradient; the gradient of a relative position
// bias is the sum of ds_ij over all pairs in its bucket.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "backends/formulas/key_codes.h"
#include "backends/note_extent.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "backends/reference/line.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::reference {
namespace {

using program::Attention;
using program::AttentionGrad;

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// One segment: its queries and keys, and which query sees which keys.
template <typename Attributes>
struct SegmentView {
  const Attributes& attention;
  Range queries;
  Range keys;

  // The key on a query's diagonal, such that the last query's is the last key.
  int64_t diagonal(int64_t query) const {
    const int64_t shift = (keys.end - keys.begin) - (queries.end - queries.begin);
    return keys.begin + (query - queries.begin) + shift;
  }

  // The relative position of the key from the query. For causal attention the query's position is
  // its diagonal; otherwise positions of both count from the beginning of the segment.
  int64_t relative(int64_t query, int64_t key) const {
    if (attention.causal) return key - diagonal(query);
    return (key - keys.begin) - (query - queries.begin);
  }

  // The keys that a query sees; empty where begin >= end.
  Range keys_of(int64_t query) const {
    if (!attention.causal && attention.window == 0) return keys;
    const int64_t last = diagonal(query);
    Range seen = keys;
    if (attention.causal) seen.end = std::min(keys.end, last + 1);
    if (attention.window > 0) seen.begin = std::max(keys.begin, last - attention.window + 1);
    return seen;
  }
};

template <typename Attributes>
SegmentView<Attributes> segment_at(const Attributes& attention, const Invocation& invocation,
                                   int64_t index) {
  const Integers queries(invocation[Attributes::kQBounds]);
  const Integers keys(invocation[Attributes::kKBounds]);
  const Range range{queries[2 * index], queries[2 * index + 1]};
  const int64_t longest = attention.segment_tokens;
  SNUG_CHECK(longest == 0 || range.end - range.begin <= longest,
             "a segment of {} tokens, beyond {}", range.end - range.begin, longest);
  return {attention, range, {keys[2 * index], keys[2 * index + 1]}};
}

// The rows of k and v in which the keys of a segment lie.
class KeyRows {
 public:
  KeyRows(const Attention& attention, const Invocation& invocation, int64_t segment)
      : page_tokens_(attention.page_tokens) {
    if (!attention.paged) return;
    const Buffer& pages = invocation[Attention::kPages];
    table_.emplace(pages);
    first_ = segment * pages.shape[1];
    pages_ = pages.shape[1];
    pool_pages_ = invocation[Attention::kK].shape.rows() / page_tokens_;
  }
  int64_t at(int64_t key) const {
    if (!table_) return key;
    const int64_t place = key / page_tokens_;
    SNUG_CHECK(place < pages_, "key {} of a segment that has {} pages of {}", key, pages_,
               page_tokens_);
    const int64_t page = (*table_)[first_ + place];
    SNUG_CHECK(page >= 0 && page < pool_pages_, "page {} of {}", page, pool_pages_);
    return page * page_tokens_ + key % page_tokens_;
  }

 private:
  int64_t page_tokens_;
  std::optional<Integers> table_;
  int64_t first_ = 0;
  int64_t pages_ = 0;
  int64_t pool_pages_ = 0;
};

// Keys or values: numbers of some float type, or of 8 bits that a scale of their row and head
// multiplies.
template <typename T>
class KeyHeads {
 public:
  KeyHeads(const Attention& attention, const Buffer& rows, const Buffer* scales)
      : head_dim_(attention.head_dim), rows_(rows), scales_(scales) {}
  T at(int64_t row, int64_t head, int64_t d) const {
    const int64_t column = head * head_dim_ + d;
    if (scales_ == nullptr) return Floats<T>(rows_).at(row, column);
    return static_cast<T>(rows_.as<const int8_t>()[offset_of(rows_, row, column)]);
  }
  T scale(int64_t row, int64_t head) const {
    return scales_ == nullptr ? T{1} : Floats<T>(*scales_).at(head, row);
  }
  // The dot product of a head of query i and a head of a row.
  T dot(const Floats<T>& q, int64_t i, int64_t q_head, int64_t row, int64_t head) const {
    T sum = 0;
    if (scales_ == nullptr)
      return add_products(sum, line_across(q.buffer(), i, q_head * head_dim_),
                          line_across(rows_, row, head * head_dim_), head_dim_);
    for (int64_t d = 0; d < head_dim_; ++d)
      sum += q.at(i, q_head * head_dim_ + d) * at(row, head, d);
    return scale(row, head) * sum;
  }

 private:
  int64_t head_dim_;
  const Buffer& rows_;
  const Buffer* scales_;
};

// The dot product of head `head_a` of row i of a and head `head_b` of row j of b.
template <typename T>
struct Heads {
  int64_t head_dim;
  T dot(const Floats<T>& a, int64_t i, int64_t head_a, const Floats<T>& b, int64_t j,
        int64_t head_b) const {
    return add_products(T{0}, line_across(a.buffer(), i, head_a * head_dim),
                        line_across(b.buffer(), j, head_b * head_dim), head_dim);
  }
};

// The row of the bias table for query i and key j.
template <typename Attributes>
int64_t bucket_at(const SegmentView<Attributes>& segment, const Buffer& bias, int64_t i,
                  int64_t j) {
  const Attributes& attention = segment.attention;
  return program::bucket_of(segment.relative(i, j), attention.causal, bias.shape[0],
                            attention.max_distance);
}

// A score, and its derivative with respect to scale q k.
template <typename T>
struct Score {
  T value, slope;
};

// The score of query i and key j, given the product of their heads.
template <typename T, typename Attributes>
Score<T> score_of(const SegmentView<Attributes>& segment, const Invocation& invocation, T product,
                  int64_t i, int64_t j, int64_t head) {
  const Attributes& attention = segment.attention;
  Score<T> score{static_cast<T>(attention.scale) * product, 1};
  if (attention.softcap > 0) {
    const auto cap = static_cast<T>(attention.softcap);
    const T share = std::tanh(score.value / cap);
    score = {cap * share, 1 - share * share};
  }
  if (attention.alibi_scale != 0) {
    const double slope = static_cast<double>(attention.alibi_scale) *
                         std::exp2(-program::alibi_exponent(attention.heads, head));
    score.value += static_cast<T>(slope) * static_cast<T>(j - segment.diagonal(i));
  }
  if (attention.relative_bias) {
    const Buffer& bias = invocation[Attributes::kBias];
    score.value += Floats<T>(bias).at(bucket_at(segment, bias, i, j), head);
  }
  return score;
}

template <typename T>
void fill_zero(const Floats<T>& x) {
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, T{0});
}

// Computes o and lse of one query and head; `scores` has room for a row of keys.
template <typename T>
void attend(const SegmentView<Attention>& segment, const KeyRows& rows,
            const Invocation& invocation, int64_t i, int64_t head) {
  const Attention& attention = segment.attention;
  const Floats<T> q(invocation[Attention::kQ]);
  const bool is_quantized = attention.quantized;
  const KeyHeads<T> k(attention, invocation[Attention::kK],
                      is_quantized ? &invocation[Attention::kKScales] : nullptr);
  const KeyHeads<T> v(attention, invocation[Attention::kV],
                      is_quantized ? &invocation[Attention::kVScales] : nullptr);
  const Floats<T> o(invocation[Attention::kO]);
  const std::span<T> scores = scratch<T>(invocation);
  const int64_t kv_head = head / (attention.heads / attention.kv_heads);
  const Range seen = segment.keys_of(i);
  if (seen.begin >= seen.end) return;
  const T no_score = -std::numeric_limits<T>::infinity();
  const T sink = attention.sinks ? Floats<T>(invocation[Attention::kSinks])[head] : no_score;
  T largest = sink;
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    const T product = k.dot(q, i, head, rows.at(j), kv_head);
    const T score = score_of(segment, invocation, product, i, j, head).value;
    scores[static_cast<size_t>(j)] = score;
    largest = std::max(largest, score);
  }
  T sum = std::exp(sink - largest);
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    T& score = scores[static_cast<size_t>(j)];
    score = std::exp(score - largest);
    sum += score;
  }
  Floats<T>(invocation[Attention::kLse]).set(head, i, largest + std::log(sum));
  for (int64_t d = 0; d < attention.head_dim; ++d) {
    T value = 0;
    for (int64_t j = seen.begin; j < seen.end; ++j)
      value += scores[static_cast<size_t>(j)] * v.scale(rows.at(j), kv_head) *
               v.at(rows.at(j), kv_head, d);
    o.set(i, head * attention.head_dim + d, value / sum);
  }
}

// The tensors that the gradient's loops read and write.
template <typename T>
struct GradientTensors {
  explicit GradientTensors(const Invocation& operands)
      : d_o(operands[AttentionGrad::kDO]),
        q(operands[AttentionGrad::kQ]),
        k(operands[AttentionGrad::kK]),
        v(operands[AttentionGrad::kV]),
        o(operands[AttentionGrad::kO]),
        lse(operands[AttentionGrad::kLse]),
        dq(operands[AttentionGrad::kDQ]),
        dk(operands[AttentionGrad::kDK]),
        dv(operands[AttentionGrad::kDV]),
        invocation(operands) {}
  Floats<T> d_o, q, k, v, o, lse, dq, dk, dv;
  const Invocation& invocation;
};

// A query head, and do_i o_i, which is the mean of do_i v_j weighted by p_ij.
template <typename T>
struct QueryHead {
  int64_t i, head;
  T mean;
};

template <typename T>
QueryHead<T> query_head(const GradientTensors<T>& tensors, int64_t head_dim, int64_t i,
                        int64_t head) {
  return {i, head, Heads<T>{head_dim}.dot(tensors.d_o, i, head, tensors.o, i, head)};
}

// p_ij of a query head, and the gradients of its score and of scale q_i k_j.
template <typename T>
struct Pair {
  T probability;
  T d_score;
  T d_product;
};

template <typename T>
Pair<T> pair_of(const SegmentView<AttentionGrad>& segment, const GradientTensors<T>& tensors,
                const QueryHead<T>& query, int64_t j) {
  const auto [i, head, mean] = query;
  const AttentionGrad& grad = segment.attention;
  const Heads<T> heads{grad.head_dim};
  const int64_t kv_head = head / (grad.heads / grad.kv_heads);
  const Score<T> score = score_of(segment, tensors.invocation,
                                  heads.dot(tensors.q, i, head, tensors.k, j, kv_head), i, j, head);
  const T probability = std::exp(score.value - tensors.lse.at(head, i));
  const T d_probability = heads.dot(tensors.d_o, i, head, tensors.v, j, kv_head);
  const T d_score = probability * (d_probability - mean);
  return {probability, d_score, d_score * score.slope};
}

// Computes dq of one query and head; `sum` has room for a head.
template <typename T>
void query_gradient(const SegmentView<AttentionGrad>& segment, const GradientTensors<T>& tensors,
                    std::span<T> sum, int64_t i, int64_t head) {
  const AttentionGrad& grad = segment.attention;
  const int64_t width = grad.head_dim;
  const int64_t kv_head = head / (grad.heads / grad.kv_heads);
  std::fill(sum.begin(), sum.end(), T{0});
  const Range seen = segment.keys_of(i);
  const QueryHead<T> query = query_head(tensors, width, i, head);
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    const Pair<T> pair = pair_of(segment, tensors, query, j);
    add_multiple(sum, pair.d_product, line_across(tensors.k.buffer(), j, kv_head * width));
  }
  for (int64_t d = 0; d < width; ++d)
    tensors.dq.set(i, head * width + d, static_cast<T>(grad.scale) * sum[static_cast<size_t>(d)]);
}

// Computes dk and dv of one key and its head, from all query heads that read it.
template <typename T>
void key_gradient(const SegmentView<AttentionGrad>& segment, const GradientTensors<T>& tensors,
                  std::span<T> sums, int64_t j, int64_t kv_head) {
  const AttentionGrad& grad = segment.attention;
  const int64_t width = grad.head_dim;
  const int64_t group = grad.heads / grad.kv_heads;
  const std::span<T> dk = sums.first(static_cast<size_t>(width));
  const std::span<T> dv = sums.subspan(static_cast<size_t>(width), static_cast<size_t>(width));
  std::fill(sums.begin(), sums.end(), T{0});
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head)
    for (int64_t i = segment.queries.begin; i < segment.queries.end; ++i) {
      const Range seen = segment.keys_of(i);
      if (j < seen.begin || j >= seen.end) continue;
      const QueryHead<T> query = query_head(tensors, width, i, head);
      const Pair<T> pair = pair_of(segment, tensors, query, j);
      add_multiple(dk, pair.d_product, line_across(tensors.q.buffer(), i, head * width));
      add_multiple(dv, pair.probability, line_across(tensors.d_o.buffer(), i, head * width));
    }
  for (int64_t d = 0; d < width; ++d) {
    tensors.dk.set(j, kv_head * width + d, static_cast<T>(grad.scale) * dk[static_cast<size_t>(d)]);
    tensors.dv.set(j, kv_head * width + d, dv[static_cast<size_t>(d)]);
  }
}

// Adds the gradients of one query head's scores to the sums of their buckets, (buckets, heads).
template <typename T>
void add_bias_gradient(const SegmentView<AttentionGrad>& segment, const GradientTensors<T>& tensors,
                       std::span<T> sums, int64_t i, int64_t head) {
  const Buffer& bias = tensors.invocation[AttentionGrad::kBias];
  const Range seen = segment.keys_of(i);
  const QueryHead<T> query = query_head(tensors, segment.attention.head_dim, i, head);
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    const int64_t at = bucket_at(segment, bias, i, j) * segment.attention.heads + head;
    sums[static_cast<size_t>(at)] += pair_of(segment, tensors, query, j).d_score;
  }
}

template <typename T>
void run(const Attention& attention, const Invocation& invocation) {
  note_segments(attention, invocation);
  fill_zero(Floats<T>(invocation[Attention::kO]));
  fill_zero(Floats<T>(invocation[Attention::kLse]));
  const int64_t segments = invocation[Attention::kQBounds].shape.rows();
  for (int64_t index = 0; index < segments; ++index) {
    const auto segment = segment_at(attention, invocation, index);
    const KeyRows rows(attention, invocation, index);
    for (int64_t i = segment.queries.begin; i < segment.queries.end; ++i)
      for (int64_t head = 0; head < attention.heads; ++head)
        attend<T>(segment, rows, invocation, i, head);
  }
}

int64_t scratch_elements(const Attention& attention, const program::OperationView& view) {
  return most_keys(attention, view);
}

template <typename T>
void run(const AttentionGrad& grad, const Invocation& invocation) {
  note_segments(grad, invocation);
  const GradientTensors<T> tensors(invocation);
  const auto width = static_cast<size_t>(grad.head_dim);
  const std::span<T> memory = scratch<T>(invocation);
  const std::span<T> bias_sums = memory.subspan(2 * width);
  std::fill(bias_sums.begin(), bias_sums.end(), T{0});
  fill_zero(tensors.dq);
  fill_zero(tensors.dk);
  fill_zero(tensors.dv);
  const int64_t segments = invocation[AttentionGrad::kQBounds].shape.rows();
  for (int64_t index = 0; index < segments; ++index) {
    const auto segment = segment_at(grad, invocation, index);
    for (int64_t i = segment.queries.begin; i < segment.queries.end; ++i)
      for (int64_t head = 0; head < grad.heads; ++head) {
        query_gradient(segment, tensors, memory.first(width), i, head);
        if (grad.bias_gradient) add_bias_gradient(segment, tensors, bias_sums, i, head);
      }
    for (int64_t j = segment.keys.begin; j < segment.keys.end; ++j)
      for (int64_t head = 0; head < grad.kv_heads; ++head)
        key_gradient(segment, tensors, memory.first(2 * width), j, head);
  }
  if (!grad.bias_gradient) return;
  const Floats<T> dbias(invocation[AttentionGrad::kDBias]);
  for (int64_t at = 0; at < dbias.count(); ++at) dbias.set(at, bias_sums[static_cast<size_t>(at)]);
}

int64_t scratch_elements(const AttentionGrad& grad, const program::OperationView& view) {
  const int64_t sums =
      grad.bias_gradient ? view[AttentionGrad::kDBias].shape.elements() : int64_t{0};
  return 2 * grad.head_dim + sums;
}

// Turns one head of a row into numbers of 8 bits and their scale.
template <typename T>
void quantize_head(const Floats<T>& x, int64_t t, int64_t slot, int64_t head,
                   const Invocation& invocation) {
  const Buffer& cache = invocation[program::CacheWrite::kCache];
  const Floats<float> scales(invocation[program::CacheWrite::kScales]);
  const int64_t width = x.columns() / scales.rows();
  float largest = 0.0F;
  bool is_finite = true;
  for (int64_t d = 0; d < width; ++d) {
    const auto value = static_cast<float>(x.at(t, head * width + d));
    is_finite = is_finite && std::isfinite(value);
    largest = std::max(largest, std::abs(value));
  }
  const bool is_zero = largest < kMinMagnitude;
  const float inverse = is_zero ? 0.0F : kLargestCode / largest;
  for (int64_t d = 0; d < width; ++d) {
    const float value = is_finite ? static_cast<float>(x.at(t, head * width + d)) : 0.0F;
    cache.as<int8_t>()[offset_of(cache, slot, head * width + d)] =
        static_cast<int8_t>(std::nearbyint(value * inverse));
  }
  const float scale = is_zero ? 0.0F : largest / kLargestCode;
  scales.set(head, slot, is_finite ? scale : std::numeric_limits<float>::quiet_NaN());
}

template <typename T>
void run(const program::CacheWrite& write, const Invocation& invocation) {
  const Floats<T> x(invocation[program::CacheWrite::kX]);
  const Integers slots(invocation[program::CacheWrite::kSlots]);
  const Buffer& cache = invocation[program::CacheWrite::kCache];
  note_rows(invocation, program::CacheWrite::kSlots);
  for (int64_t t = 0; t < x.rows(); ++t) {
    if (slots[t] < 0) continue;
    SNUG_CHECK(slots[t] < cache.shape.rows(), "slot {} of {}", slots[t], cache.shape.rows());
    if (write.quantized) {
      const int64_t heads = invocation[program::CacheWrite::kScales].shape.rows();
      for (int64_t head = 0; head < heads; ++head) quantize_head(x, t, slots[t], head, invocation);
    } else {
      const Floats<T> rows(cache);
      for (int64_t j = 0; j < x.columns(); ++j) rows.set(slots[t], j, x.at(t, j));
    }
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Attention, .scratch_elements = scratch_elements);
SNUG_REFERENCE_KIND(AttentionGrad, .scratch_elements = scratch_elements);
SNUG_REFERENCE_KIND(CacheWrite);

}  // namespace snug::backends::reference
