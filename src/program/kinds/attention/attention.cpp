#include "program/kinds/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "program/ir/tape.h"
#include "program/kinds/attention/attention_segments.h"
#include "program/kinds/attention/attention_sinks.h"
#include "program/kinds/functions.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// For Attention and AttentionGrad, which have the same attributes.
template <typename Attributes>
void check_attributes(const Attributes& attention, ShapeRule& rule) {
  rule.require(attention.heads > 0 && attention.kv_heads > 0 && attention.head_dim > 0,
               "needs positive heads, kv_heads and head_dim");
  rule.require(attention.kv_heads > 0 && attention.heads % attention.kv_heads == 0,
               "has heads that are no multiple of kv_heads");
  rule.require(std::isfinite(attention.scale), "has a scale that is not finite");
  rule.require(attention.window >= 0, "has a negative window");
  rule.require(attention.segment_tokens >= 0, "has a negative segment_tokens");
  rule.require(attention.kernel.few_queries >= 0, "has a negative few_queries");
  rule.require(std::isfinite(attention.softcap) && attention.softcap >= 0.0F,
               "has a softcap that is negative or not finite");
  rule.require(std::isfinite(attention.alibi_scale), "has an alibi_scale that is not finite");
  rule.require(attention.causal || attention.alibi_scale == 0.0F,
               "has an alibi_scale without being causal");
  rule.require(!attention.relative_bias || attention.max_distance > 0,
               "has a relative_bias without a max_distance");
}

// Without causal attention, each direction has half of the buckets. Half of a direction's buckets
// stand for a single distance each, so its number must be even.
template <typename Struct>
void check_bias(const Struct& attention, const OperationView& view, ShapeRule& rule) {
  if (!attention.relative_bias) return;
  const Tensor& bias = view[Struct::kBias];
  rule.rank(Struct::kBias, 2);
  rule.shape(Struct::kBias, Shape{bias.shape[0], attention.heads});
  const int64_t in_one_direction = bias.shape[0] / (attention.causal ? 1 : 2);
  rule.require(in_one_direction >= 2 && bias.shape[0] % (attention.causal ? 2 : 4) == 0,
               "has a bias table whose buckets cannot be halved");
  rule.require(attention.max_distance > in_one_direction / 2,
               "has a max_distance within the buckets of one distance each");
  rule.mixed_types({Struct::kQ, Struct::kBias});
}

// Numbers of 8 bits with a scale for each row and head.
void check_quantized_keys(const Attention& attention, const OperationView& view, ShapeRule& rule) {
  const Shape scales{attention.kv_heads, view[Attention::kK].shape[0]};
  rule.same_type({Attention::kQ});
  for (const auto& operand : {Attention::kK, Attention::kV}) rule.type(operand, DType::u8);
  for (const auto& operand : {Attention::kKScales, Attention::kVScales})
    rule.measure(operand, scales);
}

void check_key_types(const Attention& attention, const OperationView& view, ShapeRule& rule) {
  if (attention.quantized) return check_quantized_keys(attention, view, rule);
  rule.same_type({Attention::kQ, Attention::kK, Attention::kV});
}
void check_key_types(const AttentionGrad& /*grad*/, const OperationView& /*view*/,
                     ShapeRule& rule) {
  rule.same_type({AttentionGrad::kQ, AttentionGrad::kK, AttentionGrad::kV});
}

// Checks q, k, v and the bounds.
template <typename Struct>
void check_inputs(const Struct& attention, const OperationView& view, ShapeRule& rule) {
  const Tensor& q = view[Struct::kQ];
  const Tensor& k = view[Struct::kK];
  rule.rank(Struct::kQ, 2);
  rule.rank(Struct::kK, 2);
  rule.shape(Struct::kQ, Shape{q.shape[0], attention.heads * attention.head_dim});
  rule.shape(Struct::kK, Shape{k.shape[0], attention.kv_heads * attention.head_dim});
  rule.shape(Struct::kV, k.shape);
  check_key_types(attention, view, rule);
  const Tensor& q_bounds = view[Struct::kQBounds];
  rule.rank(Struct::kQBounds, 2);
  rule.index(Struct::kQBounds, Shape{q_bounds.shape[0], 2});
  rule.index(Struct::kKBounds, q_bounds.shape);
}

// A table of pages has a row for each segment, and its pages are those of the pools.
void check_pages(const Attention& attention, const OperationView& view, ShapeRule& rule) {
  rule.require(attention.paged == (attention.page_tokens > 0) && attention.page_tokens >= 0,
               "needs page_tokens above 0 where it is paged, and 0 where it is not");
  if (!attention.paged || !rule.error().empty()) return;
  rule.require(attention.segment_tokens == 0,
               "is paged and has segment_tokens: keys in pages do not follow one another");
  const Tensor& pages = view[Attention::kPages];
  rule.rank(Attention::kPages, 2);
  rule.index(Attention::kPages, Shape{view[Attention::kQBounds].shape[0], pages.shape[1]});
  rule.require(pages.shape[1] > 0, "has a table without pages");
  const int64_t rows = view[Attention::kK].shape[0];
  rule.require(rows > 0 && rows % attention.page_tokens == 0,
               "has pools whose rows are no whole pages");
}

template <typename Attributes>
KeyMask mask_of(const Attributes& attention) {
  return {attention.causal, attention.window};
}

bool is_paged(const Attention& attention) { return attention.paged; }
bool is_paged(const AttentionGrad& /*grad*/) { return false; }

// The expected mean length of the segments with these bounds. 0: as long as the shapes allow, where
// the bounds hold all rows, or for an encoder's stream about which nothing is expected.
double expected_tokens(const Tensor& bounds, const ExpectedBounds& expected) {
  if (hold_all_rows(bounds)) return 0;
  const base::PerStream<double>& means = expected.mean_segment_tokens;
  const bool is_unexpected = bounds.stream == base::TokenStream::encoder && !means.has_encoder();
  return is_unexpected ? 0 : means[bounds.stream];
}

template <typename Attributes>
AttentionSegments expected_by(const Attributes& attention, const OperationView& view,
                              const ExpectedBounds& expected) {
  const int64_t segments = view[Attributes::kQBounds].shape[0];
  const int64_t keys = most_keys(attention, view);
  return expected_segments({.q_tokens = view[Attributes::kQ].shape[0],
                            .k_tokens = is_paged(attention) ? segments * keys : keys,
                            .causal = attention.causal,
                            .paged = is_paged(attention),
                            .segments = segments,
                            .segment_tokens = attention.segment_tokens,
                            .mean_keys = expected_tokens(view[Attributes::kKBounds], expected)});
}

template <typename Attributes>
Extent extent_of_bounds(const Attributes& attention, std::span<const int32_t> q_bounds,
                        std::span<const int32_t> k_bounds) {
  SegmentSum all(mask_of(attention));
  for (int64_t i = 0; i < segment_count(q_bounds); ++i)
    all.add({1, static_cast<double>(tokens_of_segment(q_bounds, i)),
             static_cast<double>(tokens_of_segment(k_bounds, i))});
  return all.extent();
}

template <typename Attributes>
double score_flops(const Attributes& attention, const Extent& extent) {
  const auto width = static_cast<double>(attention.heads * attention.head_dim);
  const double products = 4.0 * extent.pairs * width;  // q k^T and p v, two operations per term
  // Operations per score. Soft cap: a quotient, tanh (division, exponential 2) and a product. Bias:
  // a distance and its product.
  const double flops = (attention.softcap > 0.0F ? 6.0 : 0.0) +
                       (attention.alibi_scale != 0.0F || attention.relative_bias ? 2.0 : 0.0);
  return products + flops * extent.pairs * static_cast<double>(attention.heads);
}

// Keys and values are read only where segments and windows reach; the rest of a cache is not read.
double bytes_of(const Attention& attention, const OperationView& view, const Extent& extent) {
  const Tensor& k = view[Attention::kK];
  double whole = static_cast<double>(k.bytes());
  double read = row_bytes(k, extent.keys);
  if (attention.quantized) {
    const Tensor& scales = view[Attention::kKScales];
    const double rows = static_cast<double>(k.shape[0]);
    whole += static_cast<double>(scales.bytes());
    read += static_cast<double>(scales.bytes()) * std::min(1.0, extent.keys / std::max(1.0, rows));
  }
  return operand_bytes(view) - 2.0 * (whole - read);
}

std::string shape_error(const Attention& attention, const OperationView& view) {
  ShapeRule rule(view);
  check_attributes(attention, rule);
  check_inputs(attention, view, rule);
  const Tensor& q = view[Attention::kQ];
  rule.shape(Attention::kO, q.shape);
  rule.mixed_types({Attention::kQ, Attention::kO});
  rule.measure(Attention::kLse, Shape{attention.heads, q.shape[0]});
  check_bias(attention, view, rule);
  check_pages(attention, view, rule);
  if (!attention.sinks) return rule.error();
  rule.shape(Attention::kSinks, Shape{attention.heads});
  rule.mixed_types({Attention::kQ, Attention::kSinks});
  return rule.error();
}

std::string shape_error(const AttentionGrad& attention, const OperationView& view) {
  ShapeRule rule(view);
  check_attributes(attention, rule);
  check_inputs(attention, view, rule);
  const Tensor& q = view[AttentionGrad::kQ];
  const Tensor& k = view[AttentionGrad::kK];
  rule.shape(AttentionGrad::kDO, q.shape);
  rule.shape(AttentionGrad::kO, q.shape);
  rule.measure(AttentionGrad::kLse, Shape{attention.heads, q.shape[0]});
  rule.shape(AttentionGrad::kDQ, q.shape);
  rule.shape(AttentionGrad::kDK, k.shape);
  rule.shape(AttentionGrad::kDV, k.shape);
  rule.mixed_types({AttentionGrad::kQ, AttentionGrad::kDO, AttentionGrad::kO, AttentionGrad::kDQ,
                    AttentionGrad::kDK, AttentionGrad::kDV});
  check_bias(attention, view, rule);
  rule.require(attention.relative_bias || !attention.bias_gradient,
               "has a bias_gradient without a bias");
  if (!attention.bias_gradient || !rule.error().empty()) return rule.error();
  rule.shape(AttentionGrad::kDBias, view[AttentionGrad::kBias].shape);
  rule.mixed_types({AttentionGrad::kQ, AttentionGrad::kDBias});
  return rule.error();
}

Cost cost(const Attention& attention, const OperationView& view, const Extent& extent) {
  return {score_flops(attention, extent), bytes_of(attention, view, extent)};
}

// Bytes of copies that remove or restore gaps between rows: each copy reads and writes a tensor.
double copied_bytes(const AttentionGrad& grad, const OperationView& view) {
  const auto bytes = [&](const Operand<AttentionGrad>& operand, bool copied) {
    return copied ? 2.0 * static_cast<double>(view[operand].bytes()) : 0.0;
  };
  return bytes(AttentionGrad::kQ, grad.dense.q) + bytes(AttentionGrad::kK, grad.dense.k) +
         bytes(AttentionGrad::kV, grad.dense.v) + bytes(AttentionGrad::kDQ, grad.dense.gradients) +
         bytes(AttentionGrad::kDK, grad.dense.gradients) +
         bytes(AttentionGrad::kDV, grad.dense.gradients);
}

// Five products where the forward pass has two: the scores again, dp, dq, dk and dv. Copying
// tensors adds bytes but no operations.
Cost cost(const AttentionGrad& attention, const OperationView& view, const Extent& extent) {
  const double copied = copied_bytes(attention, view);
  return {2.5 * score_flops(attention, extent), operand_bytes(view) + copied, copied};
}

void differentiate(const Attention& attention, const Operation& operation, Tape& tape) {
  const TensorId d_o = tape.gradient(id_of(operation, Attention::kO));
  SNUG_CHECK(d_o == kNone || !(attention.paged || attention.quantized),
             "a gradient of an attention to a cache, which is for inference alone");
  const auto id = [&](const Operand<Attention>& operand) { return id_of(operation, operand); };
  const TensorId q = id(Attention::kQ);
  const TensorId k = id(Attention::kK);
  const TensorId v = id(Attention::kV);
  if (d_o != kNone && attention.sinks && tape.wants(id(Attention::kSinks)))
    tape.emit(AttentionSinkGrad{},
              {d_o, id(Attention::kO), id(Attention::kLse), id(Attention::kSinks)},
              {tape.contribute(id(Attention::kSinks))});
  const bool wants_bias = attention.relative_bias && tape.wants(id(Attention::kBias));
  if (d_o == kNone || !(tape.wants(q) || tape.wants(k) || tape.wants(v) || wants_bias)) return;
  const auto gradient_of = [&](TensorId input_id, const char* suffix) {
    if (tape.wants(input_id)) return tape.contribute(input_id);
    const Tensor input = tape.program().tensor(input_id);  // a copy, since the table may grow
    return tape.temporary(suffix, input.shape, input.dtype);
  };
  const TensorId dq = gradient_of(q, "dq");
  const TensorId dk = gradient_of(k, "dk");
  const TensorId dv = gradient_of(v, "dv");
  AttentionGrad grad;
  grad.heads = attention.heads;
  grad.kv_heads = attention.kv_heads;
  grad.head_dim = attention.head_dim;
  grad.scale = attention.scale;
  grad.causal = attention.causal;
  grad.window = attention.window;
  grad.softcap = attention.softcap;
  grad.alibi_scale = attention.alibi_scale;
  grad.sinks = attention.sinks;
  grad.relative_bias = attention.relative_bias;
  grad.bias_gradient = wants_bias;
  grad.max_distance = attention.max_distance;
  grad.segment_tokens = attention.segment_tokens;
  grad.no_empty_segments = attention.no_empty_segments;
  grad.deterministic = attention.deterministic;
  std::vector<TensorId> reads{d_o,
                              q,
                              k,
                              v,
                              id(Attention::kO),
                              id(Attention::kLse),
                              id(Attention::kQBounds),
                              id(Attention::kKBounds)};
  std::vector<TensorId> writes{dq, dk, dv};
  if (attention.relative_bias) reads.push_back(id(Attention::kBias));
  if (wants_bias) writes.push_back(tape.contribute(id(Attention::kBias)));
  tape.emit(grad, std::move(reads), std::move(writes));
}

// The numbers of keys and values in 16 or 8 bits that decoding in parts reads.
double cache_numbers(const Attention& attention, const OperationView& view, const Extent& extent) {
  const Tensor& k = view[Attention::kK];
  if (attention.kernel.splits == 0 || size_of(k.dtype) > 2) return 0;
  return 2.0 * extent.keys * static_cast<double>(k.shape.columns());
}
double cache_numbers(const AttentionGrad&, const OperationView&, const Extent&) { return 0; }

// The form of keys and values in 8 bits is that of keys in full width with a word, so that samples
// of those can stand for it.
RateForm form_of(const Attention& attention, const OperationView& view) {
  RateForm form = typed_form(view);
  if (!attention.quantized) return form;
  const DType type = view[Attention::kQ].dtype;
  std::vector<DType>& types = form.reads;
  types.resize(types.size() - 2);  // without the scales, which are the last
  types.insert(types.begin(), {type, type});
  form.quantized = true;
  return form;
}
RateForm form_of(const AttentionGrad& /*grad*/, const OperationView& view) {
  return typed_form(view);
}

// With as many queries as keys, or in cross-attention, whole segments are processed. Otherwise a
// cache is read.
template <typename Struct>
RateKey attention_key(const Struct& attention, const OperationView& view, const Extent& extent) {
  const double keys = rate_size(most_keys(attention, view));
  const double segment = std::clamp(extent.mean_segment_tokens, 1.0, keys);
  const int64_t q_tokens = view[Struct::kQ].shape[0];
  const bool is_cached = is_paged(attention) || (q_tokens != view[Struct::kK].shape[0] &&
                                                 !crosses_streams(attention.causal, q_tokens,
                                                                  view[Struct::kQBounds].shape[0]));
  const bool is_adjusted =
      attention.softcap > 0.0F || attention.alibi_scale != 0.0F || attention.relative_bias;
  RateKey key{.form = form_of(attention, view)};
  key.form.cached = is_cached;
  key.form.by_library = is_by_library(attention);
  key.form.tensor_cores = is_on_tensor_cores(attention);
  key.form.adjusted = is_adjusted;
  key.form.copied = copies_operands(attention);
  key.shape = {segment, std::max(1.0, extent.rows) * rate_size(attention.heads),
               rate_size(attention.head_dim),
               rate_size(attention.heads) / rate_size(attention.kv_heads)};
  key.unit = Work::flops;
  key.multiplies = view[Struct::kQ].dtype;
  key.attention = {.is_gradient = std::is_same_v<Struct, AttentionGrad>,
                   .segment_tokens = segment,
                   .head_dim = rate_size(attention.head_dim),
                   .cache_numbers = cache_numbers(attention, view, extent),
                   .shared_heads = rate_size(attention.heads) / rate_size(attention.kv_heads)};
  return key;
}

RateKey rate_key(const Attention& attention, const OperationView& view, const Extent& extent) {
  return attention_key(attention, view, extent);
}

RateKey rate_key(const AttentionGrad& grad, const OperationView& view, const Extent& extent) {
  return attention_key(grad, view, extent);
}

// Segments of few queries or keys have an algorithm of their own, which computes in f32. In a plan
// that expects segments of one length, all are few or none is.
template <typename Struct>
class SegmentWork {
 public:
  explicit SegmentWork(const Struct& attention)
      : attention_(attention), few_(mask_of(attention)), others_(mask_of(attention)) {}

  void add(const AttentionSegments& segments) {
    const bool is_few = has_few(attention_, static_cast<int64_t>(std::ceil(segments.queries)),
                                static_cast<int64_t>(std::ceil(segments.keys)));
    (is_few ? few_ : others_).add(segments);
  }

  std::vector<Share> shares() const {
    std::vector<Share> shares;
    if (few_.extent().rows > 0) shares.push_back({few_.extent(), true, base::DType::f32});
    if (others_.extent().rows > 0 || shares.empty()) shares.push_back({others_.extent()});
    return shares;
  }
  int64_t few_queries() const { return static_cast<int64_t>(few_.extent().rows); }

 private:
  const Struct& attention_;
  SegmentSum few_;
  SegmentSum others_;
};

// Its piece is of the queries of the segments that are few, which a batch has, or bounds that hold
// all rows; of a target that treats all segments alike there is none.
template <typename Struct>
WorkList attention_work(const Struct& attention, const OperationView& view,
                        const BatchBounds& bounds) {
  const std::span<const int32_t> q_bounds = bounds[id_of(view.operation, Struct::kQBounds)];
  const std::span<const int32_t> k_bounds = bounds[id_of(view.operation, Struct::kKBounds)];
  SegmentWork<Struct> parts(attention);
  SegmentSum all(mask_of(attention));
  WorkList work;
  int64_t few_queries = 0;
  if (q_bounds.empty() || k_bounds.empty()) {
    const AttentionSegments expected = expected_by(attention, view, bounds.expected());
    parts.add(expected);
    work.extent = extent_of_segments(mask_of(attention), expected);
    if (const int64_t rows = view[Struct::kQ].shape[0];
        hold_all_rows(view[Struct::kKBounds]) &&
        has_few(attention, rows, most_keys(attention, view)))
      few_queries = rows;
  } else {
    for (int64_t i = 0; i < segment_count(q_bounds); ++i) {
      const AttentionSegments segment{1, static_cast<double>(tokens_of_segment(q_bounds, i)),
                                      static_cast<double>(tokens_of_segment(k_bounds, i))};
      parts.add(segment);
      all.add(segment);
    }
    work.extent = all.extent();
    few_queries = parts.few_queries();
  }
  work.shares = parts.shares();
  if (attention.kernel.few_queries > 0) work.pieces = {few_queries};
  return work;
}

}  // namespace

Extent extent_of(const Attention& attention, std::span<const int32_t> q_bounds,
                 std::span<const int32_t> k_bounds) {
  return extent_of_bounds(attention, q_bounds, k_bounds);
}

Extent extent_of(const AttentionGrad& grad, std::span<const int32_t> q_bounds,
                 std::span<const int32_t> k_bounds) {
  return extent_of_bounds(grad, q_bounds, k_bounds);
}

SNUG_DEFINE_KIND(Attention, .differentiate = differentiate, .work = attention_work,
                 .rate_key = rate_key);
SNUG_DEFINE_KIND(AttentionGrad, .work = attention_work, .rate_key = rate_key);

}  // namespace snug::program
