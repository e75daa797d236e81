// attention: softmax(scale q k^T) v a head, within segments, in flash style: scores are never
// stored (Dao et al. 2022). Grouped heads: query head h reads key head h / (heads / kv_heads).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <tuple>

#include "base/words.h"
#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

struct Extent;

// What does an attention; a target decides it.
enum class AttentionBy : uint8_t {
  plain,         // the target's own kernels, which do not multiply on tensor cores
  tensor_cores,  // the target's own kernels there
  library,       // a library
};
constexpr auto words_of(AttentionBy /*type*/) {
  return base::words<AttentionBy>({{AttentionBy::plain, "plain"},
                                   {AttentionBy::tensor_cores, "tensor_cores"},
                                   {AttentionBy::library, "library"}});
}

// Priced alike here and below: parts of keys are as many as fill the device, and samples of
// decoding are of such; segments that are few are a share, whose key has another name; of copies
// the name says that there are some, and the cost has the bytes of each.
struct AttentionChoice {
  AttentionBy by = AttentionBy::plain;
  int64_t splits = 0;       // into which the keys of a query are split while decoding; 0: one pass
  int64_t few_queries = 0;  // of a segment that has a kernel of its own; 0: none has
  bool operator==(const AttentionChoice&) const = default;
  static constexpr std::tuple kParts{
      Part{"kernel", Priced::by_kind, &AttentionChoice::by},
      Part{"splits", Priced::alike, &AttentionChoice::splits},
      Part{"few_queries", {Priced::alike, Noted::in_pieces}, &AttentionChoice::few_queries}};
};

struct AttentionGradChoice {
  AttentionBy by = AttentionBy::plain;
  int64_t few_queries = 0;
  int64_t few_keys = 0;
  bool operator==(const AttentionGradChoice&) const = default;
  static constexpr std::tuple kParts{
      Part{"kernel", Priced::by_kind, &AttentionGradChoice::by},
      Part{"few_queries", {Priced::alike, Noted::in_pieces}, &AttentionGradChoice::few_queries},
      Part{"few_keys", {Priced::alike, Noted::in_pieces}, &AttentionGradChoice::few_keys}};
};

// Which of q, k and v the target copies to be without gaps between their rows before it reads them,
// and whether it makes dq, dk and dv without gaps and copies them to where they belong.
struct DenseAttention {
  bool q = false;
  bool k = false;
  bool v = false;
  bool gradients = false;
  bool operator==(const DenseAttention&) const = default;
  static constexpr std::tuple kParts{
      Part{"dense_q", Priced::alike, &DenseAttention::q},
      Part{"dense_k", Priced::alike, &DenseAttention::k},
      Part{"dense_v", Priced::alike, &DenseAttention::v},
      Part{"dense_gradients", Priced::alike, &DenseAttention::gradients}};
};

// reads: q (q_tokens, heads * head_dim), k, v (k_tokens, kv_heads * head_dim), q_bounds and
// k_bounds (segments, 2) i32 = [begin, end) of each segment's queries and keys; unused segments are
// (0, 0); with `sinks` sinks (heads): a logit that stands next to a query's scores in the sum of
// the softmax and has no value (gpt-oss); with `relative_bias` bias (buckets, heads): a number that
// is added to a score by the distance of its key (T5, see bucket_of). writes: o like q; lse (heads,
// q_tokens) f32, the log-sum-exp of the scores and the sink, which is all that the gradient has to
// know of a sink.
//
// A score is s = scale q k; with softcap c > 0 it is c tanh(s / c) (Gemma 2). With alibi_scale a !=
// 0 a slope times the key's distance is added, after the cap: a alibi_slope(heads, head) (j - (i +
// nk - nq)), for causal attention alone (Press et al. 2022; a is 1 in BLOOM, `scale` in falcon-rw).
// The bias is added after the cap too.
//
// Causal: with nq queries and nk keys in a segment, query i sees keys j <= i + nk - nq; `window` w
// > 0 further demands j > i + nk - nq - w. Queries outside all segments give zeros (lse 0). With
// segment_tokens > 0 no segment is longer, and each begins where the one before it has ended, or
// later; with no_empty_segments every one has a token. A target may answer a gradient that need not
// be deterministic with sums in any order.
//
// Segments of at most few_queries queries are read straight from where their keys lie, by a kernel
// of its own.
//
// With `paged`, for inference alone, k and v are pools whose rows belong to pages of page_tokens
// rows, and with them there is pages (segments, pages_per_sequence) i32: key j of segment s lies in
// row pages[s, j / page_tokens] * page_tokens + j % page_tokens. k_bounds are then positions in the
// segment's row of that table, of which only the pages that hold keys from begin to end are read,
// and segments may share pages. A query's result has the same bits whichever pages its keys lie in.
//
// With `quantized` k and v are what a quantized cache_write leaves: u8 that hold numbers of 8 bits
// with a sign, and with them there are k_scales and v_scales (kv_heads, k_tokens) f32, one for each
// row and head. A key is its scale times its numbers: the scale multiplies the score, and that of a
// value its weight, so that neither is ever stored in full width.
struct Attention {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 1.0F;
  bool causal = true;
  int64_t window = 0;
  float softcap = 0.0F;
  float alibi_scale = 0.0F;
  bool sinks = false;
  bool relative_bias = false;
  int64_t max_distance = 0;  // the last bucket holds this distance and all beyond it
  int64_t segment_tokens = 0;
  bool no_empty_segments = false;
  bool deterministic = true;
  bool paged = false;
  bool quantized = false;
  int32_t page_tokens = 0;  // of a page; 0 without pages
  AttentionChoice kernel = {};
  bool operator==(const Attention&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"heads", &Attention::heads},
                 Field{"kv_heads", &Attention::kv_heads},
                 Field{"head_dim", &Attention::head_dim},
                 Field{"scale", &Attention::scale},
                 Field{"causal", &Attention::causal},
                 Field{"window", &Attention::window},
                 Field{"softcap", &Attention::softcap},
                 Field{"alibi_scale", &Attention::alibi_scale},
                 Field{"sinks", &Attention::sinks},
                 Field{"relative_bias", &Attention::relative_bias},
                 Field{"max_distance", &Attention::max_distance},
                 Field{"segment_tokens", &Attention::segment_tokens},
                 Field{"no_empty_segments", &Attention::no_empty_segments},
                 Field{"deterministic", &Attention::deterministic},
                 Field{"paged", &Attention::paged},
                 Field{"page_tokens", &Attention::page_tokens},
                 Field{"quantized", &Attention::quantized},
                 Decision{"kernel", &Attention::kernel}};
  static constexpr auto kQ = read<Attention>(0, "q");
  static constexpr auto kK = read<Attention>(1, "k");
  static constexpr auto kV = read<Attention>(2, "v");
  static constexpr auto kQBounds = read<Attention>(3, "q_bounds");
  static constexpr auto kKBounds = read<Attention>(4, "k_bounds");
  static constexpr auto kSinks = read<Attention>(5, "sinks", &Attention::sinks);
  static constexpr auto kBias = read<Attention>(6, "bias", &Attention::relative_bias);
  static constexpr auto kPages = read<Attention>(7, "pages", &Attention::paged);
  static constexpr auto kKScales = read<Attention>(8, "k_scales", &Attention::quantized);
  static constexpr auto kVScales = read<Attention>(9, "v_scales", &Attention::quantized);
  static constexpr auto kO = write<Attention>(10, "o");
  static constexpr auto kLse = write<Attention>(11, "lse");
  static constexpr std::array kOperands{kQ,    kK,     kV,       kQBounds, kKBounds, kSinks,
                                        kBias, kPages, kKScales, kVScales, kO,       kLse};
  static constexpr Traits kTraits{
      .recomputing = Recomputing::attention,
      .extents = {ExtentOperand{kQBounds.name, kQ.name}, ExtentOperand{kKBounds.name, kK.name}}};
};

// reads: do, q, k, v, o, lse, q_bounds, k_bounds; with `relative_bias` bias. writes: dq, dk, dv
// (zero outside segments); with `bias_gradient` dbias (buckets, heads): the sums over queries and
// keys of what their scores get.
// `sinks`: o and lse have some in them; what they get is attention_sink_grad's (attention_sinks.h).
// Segments of at most few_queries queries, or few_keys keys, are computed in f32 whatever their
// type.
struct AttentionGrad {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 1.0F;
  bool causal = true;
  int64_t window = 0;
  float softcap = 0.0F;
  float alibi_scale = 0.0F;
  bool sinks = false;
  bool relative_bias = false;
  bool bias_gradient = false;
  int64_t max_distance = 0;
  int64_t segment_tokens = 0;
  bool no_empty_segments = false;
  bool deterministic = true;
  DenseAttention dense = {};
  AttentionGradChoice kernel = {};
  bool operator==(const AttentionGrad&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"heads", &AttentionGrad::heads},
                 Field{"kv_heads", &AttentionGrad::kv_heads},
                 Field{"head_dim", &AttentionGrad::head_dim},
                 Field{"scale", &AttentionGrad::scale},
                 Field{"causal", &AttentionGrad::causal},
                 Field{"window", &AttentionGrad::window},
                 Field{"softcap", &AttentionGrad::softcap},
                 Field{"alibi_scale", &AttentionGrad::alibi_scale},
                 Field{"sinks", &AttentionGrad::sinks},
                 Field{"relative_bias", &AttentionGrad::relative_bias},
                 Field{"bias_gradient", &AttentionGrad::bias_gradient},
                 Field{"max_distance", &AttentionGrad::max_distance},
                 Field{"segment_tokens", &AttentionGrad::segment_tokens},
                 Field{"no_empty_segments", &AttentionGrad::no_empty_segments},
                 Field{"deterministic", &AttentionGrad::deterministic},
                 Decision{"kernel", &AttentionGrad::kernel},
                 Decision{"dense", &AttentionGrad::dense}};
  static constexpr auto kDO = read<AttentionGrad>(0, "do");
  static constexpr auto kQ = read<AttentionGrad>(1, "q");
  static constexpr auto kK = read<AttentionGrad>(2, "k");
  static constexpr auto kV = read<AttentionGrad>(3, "v");
  static constexpr auto kO = read<AttentionGrad>(4, "o");
  static constexpr auto kLse = read<AttentionGrad>(5, "lse");
  static constexpr auto kQBounds = read<AttentionGrad>(6, "q_bounds");
  static constexpr auto kKBounds = read<AttentionGrad>(7, "k_bounds");
  static constexpr auto kBias = read<AttentionGrad>(8, "bias", &AttentionGrad::relative_bias);
  static constexpr auto kDQ = write<AttentionGrad>(9, "dq");
  static constexpr auto kDK = write<AttentionGrad>(10, "dk");
  static constexpr auto kDV = write<AttentionGrad>(11, "dv");
  static constexpr auto kDBias = write<AttentionGrad>(12, "dbias", &AttentionGrad::bias_gradient);
  static constexpr std::array kOperands{kDO,      kQ,    kK,  kV,  kO,  kLse,  kQBounds,
                                        kKBounds, kBias, kDQ, kDK, kDV, kDBias};
  static constexpr Traits kTraits{
      .extents = {ExtentOperand{kQBounds.name}, ExtentOperand{kKBounds.name}}};
};

// With n the largest power of two that is not above `heads`, slopes are 2^(-8 k / n) for k = 1,
// ..., n in order of the heads, and 2^(-4 k / n) for k = 1, 3, 5, ... of those beyond. This is the
// exponent, without its sign.
constexpr double alibi_exponent(int64_t heads, int64_t head) {
  int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  const int64_t quarters = head < n ? 2 * (head + 1) : 2 * (head - n) + 1;
  return static_cast<double>(4 * quarters) / static_cast<double>(n);
}

// The row of T5's bias table, of `buckets` rows, for key j of a segment and its query i: `relative`
// is j - (i + nk - nq) where attention is causal, j - i otherwise. A row holds one distance where
// it is small, and logarithmically more up to max_distance. Queries that see keys on both sides use
// the upper half for keys after them.
int64_t bucket_of(int64_t relative, bool causal, int64_t buckets, int64_t max_distance);

// Whether a segment of so many queries, and keys, is one of few.
constexpr bool has_few(const Attention& attention, int64_t queries, int64_t /*keys*/) {
  return attention.kernel.few_queries > 0 && queries <= attention.kernel.few_queries;
}
constexpr bool has_few(const AttentionGrad& grad, int64_t queries, int64_t keys) {
  return (grad.kernel.few_queries > 0 && queries <= grad.kernel.few_queries) ||
         (grad.kernel.few_keys > 0 && keys <= grad.kernel.few_keys);
}

template <typename Struct>
constexpr bool is_by_library(const Struct& attention) {
  return attention.kernel.by == AttentionBy::library;
}
template <typename Struct>
constexpr bool is_on_tensor_cores(const Struct& attention) {
  return attention.kernel.by == AttentionBy::tensor_cores;
}

// Whether the target copies q, k or v, or makes the gradients elsewhere and copies them.
constexpr bool copies_operands(const Attention& /*attention*/) { return false; }
constexpr bool copies_operands(const AttentionGrad& grad) { return grad.dense != DenseAttention{}; }

// The most keys that a segment can have, of operands by name: those of an OperationView or of an
// Invocation.
template <typename Operands>
int64_t most_keys(const Attention& attention, const Operands& operands) {
  if (!attention.paged) return operands[Attention::kK].shape[0];
  return operands[Attention::kPages].shape[1] * attention.page_tokens;
}
template <typename Operands>
int64_t most_keys(const AttentionGrad& /*grad*/, const Operands& operands) {
  return operands[AttentionGrad::kK].shape[0];
}

// What they do within such bounds, (segments, 2) each.
Extent extent_of(const Attention& attention, std::span<const int32_t> q_bounds,
                 std::span<const int32_t> k_bounds);
Extent extent_of(const AttentionGrad& grad, std::span<const int32_t> q_bounds,
                 std::span<const int32_t> k_bounds);

// reads: x (tokens, width), slots (tokens) i32. updates: cache (capacity, width): row slots[t]
// becomes x[t]; a negative slot is skipped.
//
// With `quantized` the cache is u8, and scales (heads, capacity) f32 are updated with it: for each
// head of a row, which is width / heads elements, the scale is its largest magnitude / 127, and an
// element becomes the nearest whole number to x / scale, as 8 bits with a sign. A head of zeros has
// scale 0. A head with an element that is not finite has scale NaN, so that whoever reads it sees
// that (backends/formulas/key_codes.h).
struct CacheWrite {
  bool quantized = false;
  bool operator==(const CacheWrite&) const = default;
  static constexpr auto kFields = std::tuple{Field{"quantized", &CacheWrite::quantized}};
  static constexpr auto kX = read<CacheWrite>(0, "x");
  static constexpr auto kSlots = read<CacheWrite>(1, "slots");
  static constexpr auto kCache = update<CacheWrite>(2, "cache");
  static constexpr auto kScales = update<CacheWrite>(3, "scales", &CacheWrite::quantized);
  static constexpr std::array kOperands{kX, kSlots, kCache, kScales};
  static constexpr Traits kTraits{.is_joinable = true, .extents = {ExtentOperand{kSlots.name}}};
};

}  // namespace snug::program
