#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attention_bounds.h"
#include "backends/reference/reference_backend.h"
#include "backends/reference/with_float_type.h"
#include "operation_case.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/attention_sinks.h"

namespace snug::backends::test {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::DType;
using program::Shape;
using program::TensorId;

struct Form {
  int64_t heads, kv_heads, head_dim;
  bool causal = true;
  int64_t window = 0;
  bool deterministic = true;
  float softcap = 0.0F;
  float alibi_scale = 0.0F;
  bool sinks = false;
  int64_t buckets = 0;  // of a bias by relative position; 0: it has none
  int64_t max_distance = 0;
  bool trains_bias = true;
  bool quantized = false;  // keys and values in 8 bits
  bool has_bias_gradient() const { return buckets > 0 && trains_bias; }
};

// How a case lies in memory, and what its operation is told.
struct Variant {
  bool views = false;
  bool fused = false;  // of views only q, k, v and their gradients are some
  int64_t left = 3;    // columns next to a view
  int64_t right = 2;
  bool knows_segments = false;  // their greatest length
  bool none_is_empty = false;
};

constexpr Form kForms[]{{1, 1, 4},          {4, 2, 16},           {3, 1, 5},           {2, 2, 64},
                        {9, 3, 24},         {2, 1, 128},          {2, 2, 16, false},   {4, 2, 80},
                        {2, 1, 8, true, 5}, {2, 1, 40, true, 16}, {2, 2, 16, false, 7}};

Attention attention_of(const Form& form, const Bounds& bounds, const Variant& variant) {
  return {.heads = form.heads,
          .kv_heads = form.kv_heads,
          .head_dim = form.head_dim,
          .scale = 1.0F / std::sqrt(static_cast<float>(form.head_dim)),
          .causal = form.causal,
          .window = form.window,
          .softcap = form.softcap,
          .alibi_scale = form.alibi_scale,
          .sinks = form.sinks,
          .relative_bias = form.buckets > 0,
          .max_distance = form.max_distance,
          .segment_tokens = variant.knows_segments ? longest_of(bounds) : 0,
          .no_empty_segments = variant.none_is_empty,
          .deterministic = form.deterministic};
}

std::string name_of(const Form& form, const Bounds& bounds, const Variant& variant) {
  return fmt::format(
      "{}, {} heads on {} of {}{}{}{}{}{}{}{}{}{}{}", bounds.name, form.heads, form.kv_heads,
      form.head_dim, form.causal ? "" : ", not causal",
      form.window > 0 ? fmt::format(", window {}", form.window) : "",
      form.softcap > 0 ? fmt::format(", softcap {}", form.softcap) : "",
      form.alibi_scale != 0 ? ", ALiBi" : "", form.sinks ? ", sinks" : "",
      form.buckets > 0 ? fmt::format(", {} buckets to {}{}", form.buckets, form.max_distance,
                                     form.trains_bias ? "" : ", frozen")
                       : "",
      variant.fused ? ", fused" : "",
      !variant.knows_segments ? ""
      : variant.none_is_empty ? ", segments known, none empty"
                              : ", segments known",
      form.quantized ? ", in 8 bits" : "", form.deterministic ? "" : ", in any order");
}

// What lies outside all segments is not read: a cache's free slots hold anything.
Values with_nan_outside(Values values, int64_t tokens, const Values& bounds) {
  const int64_t width = static_cast<int64_t>(values.size()) / tokens;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto at = static_cast<double>(t);
    bool inside = false;
    for (size_t s = 0; s < bounds.size(); s += 2)
      inside = inside || (at >= bounds[s] && at < bounds[s + 1]);
    for (int64_t j = 0; j < width && !inside; ++j)
      values[static_cast<size_t>(t * width + j)] = std::numeric_limits<double>::quiet_NaN();
  }
  return values;
}

OperationCase forward_case(CaseList& list, const Form& form, const Bounds& bounds, bool nan_outside,
                           const Variant& variant) {
  CaseBuilder builder(list.types, list.random);  // gradients are made of it too
  if (variant.views) builder.use_views(variant.left, variant.right);
  const int64_t q_width = form.heads * form.head_dim;
  const int64_t k_width = form.kv_heads * form.head_dim;
  const auto q = builder.activation({bounds.q_tokens, q_width});
  const auto k = builder.activation({bounds.k_tokens, k_width});
  const auto v = builder.activation({bounds.k_tokens, k_width});
  const auto q_bounds = builder.index({bounds.segments(), 2}, bounds.queries);
  const auto k_bounds =
      variant.knows_segments ? q_bounds : builder.index({bounds.segments(), 2}, bounds.keys);
  std::vector<TensorId> reads{q, k, v, q_bounds, k_bounds};
  // Some weigh as much as all keys, some next to nothing.
  if (form.sinks)
    reads.push_back(builder.input({form.heads}, list.types.activation,
                                  normal(list.random, form.heads, 1.0, 3.0)));
  if (form.buckets > 0) reads.push_back(builder.weight({form.buckets, form.heads}));
  if (variant.fused) builder.use_whole_tensors();
  const auto o = builder.output_activation({bounds.q_tokens, q_width});
  const auto lse = builder.output_measure({form.heads, bounds.q_tokens});
  OperationCase result = builder.finish(name_of(form, bounds, variant),
                                        attention_of(form, bounds, variant), reads, {o, lse});
  if (nan_outside)
    for (const TensorId id : {k, v})
      result.inputs[id] = with_nan_outside(result.inputs[id], bounds.k_tokens, bounds.keys);
  return result;
}

// The backward operation of a forward case, on the outputs that the forward pass really has.
OperationCase backward_case(CaseList& list, const Form& form, const Bounds& bounds,
                            const Variant& variant) {
  const OperationCase forward = forward_case(list, form, bounds, false, {});
  reference::ReferenceBackend reference({});
  const RunResult outputs = guarded_run(
      reference, reference::with_float_type(forward.program, DType::f64), forward.inputs);
  const auto& in = forward.operation().reads;
  const auto& out = forward.operation().writes;
  CaseBuilder builder = list.builder();
  if (variant.views && !variant.fused) builder.use_views(variant.left, variant.right);
  const DType type = list.types.activation;
  const Shape q_shape{bounds.q_tokens, form.heads * form.head_dim};
  const Shape k_shape{bounds.k_tokens, form.kv_heads * form.head_dim};
  const auto d_o = builder.activation(q_shape);
  const auto o = builder.input(q_shape, type, outputs.values.at(out[0]));
  if (variant.fused) builder.use_views(variant.left, variant.right);
  const auto known = [&](const Shape& shape, const Values& values) {
    return variant.fused ? builder.activation(shape, values) : builder.input(shape, type, values);
  };
  const auto q = known(q_shape, forward.inputs.at(in[0]));
  const auto k = known(k_shape, forward.inputs.at(in[1]));
  const auto v = known(k_shape, forward.inputs.at(in[2]));
  const auto lse = builder.measure({form.heads, bounds.q_tokens}, outputs.values.at(out[1]));
  const auto q_bounds = builder.index({bounds.segments(), 2}, bounds.queries);
  const auto k_bounds =
      variant.knows_segments ? q_bounds : builder.index({bounds.segments(), 2}, bounds.keys);
  const auto dq = builder.output_activation(q_shape);
  const auto dk = builder.output_activation(k_shape);
  const auto dv = builder.output_activation(k_shape);
  const Attention attention = attention_of(form, bounds, variant);
  const AttentionGrad grad{.heads = form.heads,
                           .kv_heads = form.kv_heads,
                           .head_dim = form.head_dim,
                           .scale = attention.scale,
                           .causal = form.causal,
                           .window = form.window,
                           .softcap = form.softcap,
                           .alibi_scale = form.alibi_scale,
                           .sinks = form.sinks,
                           .relative_bias = attention.relative_bias,
                           .bias_gradient = form.has_bias_gradient(),
                           .max_distance = form.max_distance,
                           .segment_tokens = attention.segment_tokens,
                           .no_empty_segments = attention.no_empty_segments,
                           .deterministic = form.deterministic};
  std::vector<TensorId> reads{d_o, q, k, v, o, lse, q_bounds, k_bounds};
  std::vector<TensorId> writes{dq, dk, dv};
  const Shape bias_shape{form.buckets, form.heads};
  if (form.buckets > 0)
    reads.push_back(builder.input(bias_shape, list.types.weight, forward.inputs.at(in.back())));
  if (grad.bias_gradient) writes.push_back(builder.output_gradient(bias_shape));
  OperationCase result = builder.finish(name_of(form, bounds, variant), grad, reads, writes);
  for (const TensorId id : {d_o, q, o})
    result.inputs[id] = with_nan_outside(result.inputs[id], bounds.q_tokens, bounds.queries);
  for (const TensorId id : {k, v})
    result.inputs[id] = with_nan_outside(result.inputs[id], bounds.k_tokens, bounds.keys);
  return result;
}

// What the sinks of a forward case get.
OperationCase sinks_case(CaseList& list, const Form& form, const Bounds& bounds,
                         const Variant& variant) {
  const OperationCase forward = forward_case(list, form, bounds, false, {});
  reference::ReferenceBackend reference({});
  const RunResult outputs = guarded_run(
      reference, reference::with_float_type(forward.program, DType::f64), forward.inputs);
  const auto& out = forward.operation().writes;
  CaseBuilder builder = list.builder();
  const Shape shape{bounds.q_tokens, form.heads * form.head_dim};
  const Shape heads{form.heads};
  const DType type = list.types.activation;
  const auto o = builder.input(shape, type, outputs.values.at(out[0]));
  const auto lse = builder.measure({form.heads, bounds.q_tokens}, outputs.values.at(out[1]));
  const auto sinks = builder.input(heads, type, forward.inputs.at(forward.operation().reads[5]));
  if (variant.views) builder.use_views(variant.left, variant.right);
  // Of one sign, so that the sum of few queries is not what rounding leaves.
  const auto d_o = builder.activation(shape, outputs.values.at(out[0]));
  return builder.finish(name_of(form, bounds, variant), program::AttentionSinkGrad{},
                        {d_o, o, lse, sinks}, {builder.output_gradient(heads)});
}

void add_case(CaseList& list, const Form& form, const Bounds& bounds, const Variant& variant) {
  if (list.kind == program::Kind::attention)
    list.add(forward_case(list, form, bounds, true, variant));
  if (list.kind == program::Kind::attention_sink_grad && form.sinks)
    list.add(sinks_case(list, form, bounds, variant));
  // With one key the softmax is constant, and its gradient the rounding error of o.
  const bool is_constant = bounds.keys.size() == 2 && bounds.keys[1] == 1 && !form.sinks;
  if (list.kind == program::Kind::attention_grad && !is_constant)
    list.add(backward_case(list, form, bounds, variant));
}

// What a library for whole segments may take: their longest is known, keys are those of the
// queries.
void add_segment_cases(CaseList& list) {
  constexpr Form kSegmentForms[]{{4, 2, 32, true, 0, false},  {2, 2, 64, true, 0, false},
                                 {6, 3, 32, true, 9, false},  {2, 1, 128, false, 0, false},
                                 {3, 1, 5, true, 0, false},   {4, 2, 32},
                                 {2, 2, 64, true, 300, false}};
  for (const Form& form : kSegmentForms)
    for (const Bounds& bounds : {whole(65), packed(list.random, 17), packed(list.random, 130)})
      add_case(list, form, bounds, {.knows_segments = true});
  add_case(list, kSegmentForms[0], packed(list.random, 70),
           {.views = true, .left = 8, .right = 16, .knows_segments = true});
  // Gradients that are few columns of a wide matrix.
  for (const Form& form : {kSegmentForms[0], kSegmentForms[1]})
    add_case(list, form, packed(list.random, 70),
             {.views = true, .left = 8, .right = 1024, .knows_segments = true});
  add_case(list, kSegmentForms[0], packed(list.random, 70),
           {.views = true, .knows_segments = true});
  // Rows of one document each, as jobs have them whose library takes no empty segments.
  constexpr Form kWhole[]{{2, 2, 64, true, 0, false},
                          {4, 2, 32, true, 0, false},
                          {4, 2, 96, true, 0, false},
                          {2, 1, 128, true, 0, false},
                          {3, 3, 96, true, 0, false}};
  for (const Form& form : kWhole) {
    for (const Bounds& bounds : {whole(200), rows_of({128, 128}), rows_of({65, 130, 7})})
      add_case(list, form, bounds, {.knows_segments = true, .none_is_empty = true});
    for (const bool fused : {false, true})
      add_case(list, form, rows_of({128, 128}),
               {.views = true,
                .fused = fused,
                .left = 8,
                .right = 16,
                .knows_segments = true,
                .none_is_empty = true});
  }
}

// Caches that backends may spread over several workers: full, hardly begun, of several sequences.
void add_decoding_cases(CaseList& list) {
  constexpr Form kDecoding[]{{4, 1, 64}, {7, 1, 128},           {10, 1, 256},      {6, 2, 256},
                             {2, 2, 20}, {8, 2, 64, true, 90},  {3, 1, 64, false}, {3, 3, 128},
                             {2, 1, 5},  {2, 1, 128, true, 300}};
  for (const Form& form : kDecoding) {
    for (const Bounds& bounds :
         {chunk(1, 899, 900), chunk(1, 2, 700), decode(list.random, 4, 500, true)})
      add_case(list, form, bounds, {});
    add_case(list, form, decode(list.random, 2, 150), {.views = true});
  }
}

// Scores with a cap, or with slopes, in all kernels: long rows and short ones, wide and narrow
// heads, on tensor cores and off them, few queries on a cache.
void add_adjusted_cases(CaseList& list) {
  constexpr Form kAdjusted[]{
      {.heads = 4, .kv_heads = 2, .head_dim = 16, .softcap = 1.5F},
      {.heads = 2, .kv_heads = 1, .head_dim = 128, .window = 40, .softcap = 0.75F},
      {.heads = 2, .kv_heads = 2, .head_dim = 64, .causal = false, .softcap = 2.0F},
      {.heads = 3, .kv_heads = 3, .head_dim = 5, .alibi_scale = 1.0F},
      {.heads = 8, .kv_heads = 8, .head_dim = 32, .alibi_scale = 1.0F},
      {.heads = 6, .kv_heads = 3, .head_dim = 40, .softcap = 1.5F, .alibi_scale = 0.25F},
      {.heads = 4, .kv_heads = 2, .head_dim = 16, .sinks = true},
      {.heads = 8, .kv_heads = 1, .head_dim = 64, .window = 40, .sinks = true},
      {.heads = 3, .kv_heads = 1, .head_dim = 5, .softcap = 1.5F, .sinks = true}};
  for (const Form& form : kAdjusted) {
    for (const Bounds& bounds : {whole(17), whole(131), packed(list.random, 130), chunk(1, 16, 17),
                                 chunk(33, 31, 64), decode(list.random, 3, 37)})
      add_case(list, form, bounds, {});
    add_case(list, form, packed(list.random, 70), {.views = true});
    if (list.kind == program::Kind::attention) {
      add_case(list, form, chunk(1, 899, 900), {});
      add_case(list, form, decode(list.random, 4, 500, true), {});
    }
  }
}

// Heads as wide as Gemma has them, and those that end within a tile or fit in none.
void add_wide_cases(CaseList& list) {
  constexpr Form kWide[]{
      {.heads = 2, .kv_heads = 1, .head_dim = 256},
      {.heads = 4, .kv_heads = 2, .head_dim = 256, .window = 40, .softcap = 0.75F},
      {.heads = 2, .kv_heads = 2, .head_dim = 160, .causal = false},
      {.heads = 1, .kv_heads = 1, .head_dim = 131, .alibi_scale = 1.0F}};
  for (const Form& form : kWide)
    for (const Bounds& bounds : {whole(17), packed(list.random, 130), chunk(33, 31, 64)})
      add_case(list, form, bounds, {});
  add_case(list, kWide[0], packed(list.random, 70), {.views = true});
}

// Wide heads that end within a tile of the tensor cores, on either side of its lines of 64 columns.
void add_padded_cases(CaseList& list) {
  constexpr Form kPadded[]{{.heads = 2, .kv_heads = 1, .head_dim = 136, .softcap = 1.5F},
                           {.heads = 1, .kv_heads = 1, .head_dim = 192, .window = 40},
                           {.heads = 1, .kv_heads = 1, .head_dim = 200, .sinks = true},
                           {.heads = 2, .kv_heads = 1, .head_dim = 248, .alibi_scale = 1.0F}};
  for (const Form& form : kPadded) add_case(list, form, packed(list.random, 70), {});
}

// Scores with a bias by relative position: of one stream and of two, near and beyond the last
// bucket, alone and with all that scores may have besides, in the kernels of the table above.
void add_biased_cases(CaseList& list) {
  constexpr Form kBiased[]{
      {.heads = 4, .kv_heads = 2, .head_dim = 16, .buckets = 8, .max_distance = 20},
      {.heads = 3, .kv_heads = 3, .head_dim = 5, .causal = false, .buckets = 8, .max_distance = 20},
      {.heads = 2,
       .kv_heads = 2,
       .head_dim = 64,
       .causal = false,
       .buckets = 32,
       .max_distance = 128},
      {.heads = 2,
       .kv_heads = 1,
       .head_dim = 128,
       .window = 40,
       .buckets = 32,
       .max_distance = 128},
      {.heads = 8,
       .kv_heads = 1,
       .head_dim = 64,
       .causal = false,
       .window = 9,
       .buckets = 12,
       .max_distance = 7,
       .trains_bias = false},
      {.heads = 6,
       .kv_heads = 3,
       .head_dim = 40,
       .softcap = 1.5F,
       .alibi_scale = 0.25F,
       .buckets = 6,
       .max_distance = 30},
      {.heads = 4,
       .kv_heads = 2,
       .head_dim = 16,
       .sinks = true,
       .buckets = 32,
       .max_distance = 128}};
  for (const Form& form : kBiased) {
    std::vector<Bounds> table{whole(17), packed(list.random, 130), chunk(33, 31, 64),
                              decode(list.random, 3, 37)};
    if (!form.causal) table.push_back(crossed({9, 1, 40}, {23, 4, 17}));
    for (const Bounds& bounds : table) add_case(list, form, bounds, {});
    add_case(list, form, packed(list.random, 70), {.views = true});
    if (list.kind == program::Kind::attention)
      add_case(list, form, decode(list.random, 4, 500, true), {});
  }
  // Most pairs in the last buckets.
  add_case(list, kBiased[0], whole(260), {});
  add_case(list, kBiased[2], whole(200), {});
}

// Keys in pages that lie in any order, more pages than are read, and all else no number. The second
// of four sequences gave pages back, the third is unused.
struct Pages {
  static constexpr int64_t kOfSequence = 4;
  int32_t page_tokens;
  Values keys;   // bounds
  Values table;  // (4, kOfSequence)

  Pages(Random& random, int32_t tokens, double first_keys)
      : page_tokens(tokens),
        keys{0, first_keys, double(tokens), tokens + 70.0, 0, 0, 0, 90},
        table(3 * kOfSequence) {
    std::iota(table.begin(), table.end(), 0.0);
    std::shuffle(table.begin(), table.end(), random);
    table.insert(table.begin() + 2 * kOfSequence, kOfSequence, -1.0);
  }
  int64_t rows() const { return 3 * kOfSequence * page_tokens; }
  // [begin, end) of every row that holds a key.
  Values read() const {
    Values read;
    for (int64_t segment = 0; segment < 4; ++segment)
      for (auto key = static_cast<int64_t>(keys[static_cast<size_t>(2 * segment)]);
           static_cast<double>(key) < keys[static_cast<size_t>(2 * segment + 1)]; ++key) {
        const auto place = static_cast<size_t>(segment * kOfSequence + key / page_tokens);
        const double row = table[place] * page_tokens + static_cast<double>(key % page_tokens);
        read.insert(read.end(), {row, row + 1});
      }
    return read;
  }
};

// A pool of keys or values in 8 bits, and its scales: no number for rows that are not read.
struct QuantizedPool {
  TensorId rows, scales;
};

QuantizedPool quantized_pool(CaseBuilder& builder, const Form& form, int64_t rows,
                             const Values& read) {
  const Shape shape{rows, form.kv_heads * form.head_dim};
  const TensorId codes =
      builder.input(shape, DType::u8, integers(builder.random(), shape.elements(), 0, 255));
  Values scales;
  for (int64_t head = 0; head < form.kv_heads; ++head) {
    const Values of_head =
        with_nan_outside(normal(builder.random(), rows, 0.02, 0.005), rows, read);
    scales.insert(scales.end(), of_head.begin(), of_head.end());
  }
  return {codes, builder.measure({form.kv_heads, rows}, scales)};
}

void add_paged_case(CaseList& list, const Form& form, int32_t page_tokens, const Values& queries) {
  CaseBuilder builder(list.types, list.random, list.kind);
  const Pages pages(list.random, page_tokens, queries[1] + 20);
  const Bounds bounds{fmt::format("pages of {}", page_tokens), static_cast<int64_t>(queries.back()),
                      pages.rows(), queries, pages.keys};
  const Shape q_shape{bounds.q_tokens, form.heads * form.head_dim};
  const Shape k_shape{pages.rows(), form.kv_heads * form.head_dim};
  const auto pool = [&] {
    return builder.activation(k_shape, with_nan_outside(normal(list.random, k_shape.elements()),
                                                        k_shape[0], pages.read()));
  };
  const auto quantized = [&] { return quantized_pool(builder, form, k_shape[0], pages.read()); };
  const TensorId q = builder.activation(q_shape);
  const auto k = form.quantized ? quantized() : QuantizedPool{pool(), program::kNone};
  const auto v = form.quantized ? quantized() : QuantizedPool{pool(), program::kNone};
  std::vector<TensorId> reads{q, k.rows, v.rows, builder.index({4, 2}, queries),
                              builder.index({4, 2}, pages.keys)};
  if (form.sinks)
    reads.push_back(builder.input({form.heads}, list.types.activation,
                                  normal(list.random, form.heads, 1.0, 3.0)));
  if (form.buckets > 0) reads.push_back(builder.weight({form.buckets, form.heads}));
  reads.push_back(builder.index({4, Pages::kOfSequence}, pages.table));
  if (form.quantized) reads.insert(reads.end(), {k.scales, v.scales});
  Attention attention = attention_of(form, bounds, {});
  attention.paged = true;
  attention.page_tokens = page_tokens;
  attention.quantized = form.quantized;
  const auto o = builder.output_activation(q_shape);
  list.add(builder.finish(name_of(form, bounds, {}), attention, reads,
                          {o, builder.output_measure({form.heads, bounds.q_tokens})}));
}

// One query of each sequence; few of them, and chunks of prompts.
void add_paged_cases(CaseList& list) {
  constexpr Form kPaged[]{{.heads = 4, .kv_heads = 2, .head_dim = 16},
                          {.heads = 3, .kv_heads = 1, .head_dim = 5, .window = 9},
                          {.heads = 8, .kv_heads = 1, .head_dim = 64, .window = 40, .sinks = true},
                          {.heads = 2, .kv_heads = 1, .head_dim = 128, .softcap = 1.5F},
                          {.heads = 4,
                           .kv_heads = 2,
                           .head_dim = 16,
                           .causal = false,
                           .buckets = 32,
                           .max_distance = 128}};
  const Values one{0, 1, 1, 2, 0, 0, 3, 4};
  const Values few_and_chunks{0, 3, 3, 73, 0, 0, 74, 108};
  for (const Form& form : kPaged)
    for (const int32_t page_tokens : {48, 64})
      for (const Values& queries : {one, few_and_chunks}) {
        add_paged_case(list, form, page_tokens, queries);
        Form quantized = form;
        quantized.quantized = true;
        if (page_tokens == 48) add_paged_case(list, quantized, page_tokens, queries);
      }
  // Heads of no whole vectors, and the widest.
  for (const int64_t head_dim : {24, 80, 256})
    for (const Values& queries : {one, few_and_chunks}) {
      Form wide{.heads = 2, .kv_heads = 1, .head_dim = head_dim};
      wide.quantized = true;
      add_paged_case(list, wide, 48, queries);
    }
}

// What a library for whole segments may take besides: capped scores, wide and uneven heads; and
// documents so unlike that it gets them in groups by their length.
void add_library_cases(CaseList& list) {
  constexpr Form kLibrary[]{
      {.heads = 2, .kv_heads = 1, .head_dim = 256, .deterministic = false, .softcap = 1.5F},
      {.heads = 2,
       .kv_heads = 2,
       .head_dim = 64,
       .window = 9,
       .deterministic = false,
       .softcap = 1.5F},
      {.heads = 2, .kv_heads = 1, .head_dim = 80, .deterministic = false}};
  for (const Form& form : kLibrary)
    for (const Bounds& bounds : {whole(65), packed(list.random, 70)})
      add_case(list, form, bounds, {.knows_segments = true});
  std::vector<int64_t> lengths{300, 131, 100};
  lengths.resize(37, 2);
  std::shuffle(lengths.begin(), lengths.end(), list.random);
  add_case(list, {.heads = 2, .kv_heads = 1, .head_dim = 64, .deterministic = false},
           rows_of(lengths), {.knows_segments = true});
}

// Heads as wide as those of Gemma 4's layers without a window, with pages too.
void add_widest_cases(CaseList& list) {
  constexpr Form kWidest[]{{.heads = 2, .kv_heads = 1, .head_dim = 512},
                           {.heads = 1, .kv_heads = 1, .head_dim = 328, .window = 9}};
  for (const Form& form : kWidest)
    for (const Bounds& bounds : {packed(list.random, 70), chunk(9, 31, 40)})
      add_case(list, form, bounds, {});
  if (list.kind != program::Kind::attention) return;
  constexpr Form kCodes{.heads = 2, .kv_heads = 1, .head_dim = 512, .quantized = true};
  for (const Form& form : {kWidest[0], kCodes})
    for (const Values& queries :
         {Values{0, 1, 1, 2, 0, 0, 3, 4}, Values{0, 3, 3, 33, 0, 0, 34, 50}})
      add_paged_case(list, form, 48, queries);
}

void add_attention_cases(CaseList& list) {
  for (const Form& form : kForms) {
    std::vector<Bounds> table{whole(1),          whole(3),          whole(17),
                              whole(65),         whole(131),        packed(list.random, 17),
                              chunk(1, 16, 17),  chunk(5, 70, 100), packed(list.random, 130),
                              chunk(33, 31, 64), chunk(1, 0, 9),    decode(list.random, 3, 37)};
    if (!form.causal) {
      table.push_back({"9 queries on 4 keys", 9, 4, {0, 9}, {0, 4}});
      table.push_back(crossed({70, 3, 1, 33}, {5, 90, 17, 131}));
    }
    for (const Bounds& bounds : table) add_case(list, form, bounds, {});
  }
  // Longer than any block of a kernel.
  add_case(list, kForms[1], packed(list.random, 400), {});
  add_case(list, kForms[1], chunk(130, 270, 512), {});
  add_case(list, kForms[1], packed(list.random, 70), {.views = true});
  add_segment_cases(list);
  add_adjusted_cases(list);
  add_wide_cases(list);
  add_biased_cases(list);
  if (list.kind == program::Kind::attention) {
    add_decoding_cases(list);
    add_paged_cases(list);
  }
  add_padded_cases(list);
  add_library_cases(list);
  add_widest_cases(list);
}

// Rows of several heads, one of which is all zeros.
void add_quantized_cache_case(CaseList& list, int64_t heads, int64_t head_dim, const Values& slots,
                              int64_t capacity) {
  const int64_t tokens = std::ssize(slots);
  const int64_t width = heads * head_dim;
  CaseBuilder builder = list.builder();
  Values rows = normal(list.random, tokens * width, 0.0, 3.0);
  for (int64_t d = 0; d < head_dim; ++d) rows[static_cast<size_t>(width - 1 - d)] = 0;
  const auto x = builder.activation({tokens, width}, rows);
  const auto where = builder.index({tokens}, slots);
  const auto cache =
      builder.input({capacity, width}, DType::u8, integers(list.random, capacity * width, 0, 255));
  const auto scales =
      builder.measure({heads, capacity}, normal(list.random, heads * capacity, 1.0, 0.1));
  list.add(builder.finish(fmt::format("{} x {} of {} in 8 bits", tokens, heads, head_dim),
                          program::CacheWrite{.quantized = true}, {x, where}, {}, {cache, scales}));
}

void add_cache_cases(CaseList& list) {
  for (const int64_t tokens : {1, 3, 17})
    for (const int64_t width : {1, 16, 65}) {
      constexpr int64_t kCapacity = 40;
      Values slots(kCapacity);
      for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<double>(i);
      std::shuffle(slots.begin(), slots.end(), list.random);
      slots.resize(static_cast<size_t>(tokens));
      slots[static_cast<size_t>(tokens / 2)] = tokens > 1 ? -1 : slots[0];
      CaseBuilder builder = list.builder();
      const auto x = builder.activation({tokens, width});
      const auto where = builder.index({tokens}, slots);
      const auto cache = builder.activation({kCapacity, width});
      list.add(builder.finish(fmt::format("{} x {}", tokens, width), program::CacheWrite{},
                              {x, where}, {}, {cache}));
      if (width == 1) continue;
      for (const int64_t heads : {1, 4, 5})
        add_quantized_cache_case(list, heads, width, slots, kCapacity);
    }
}

}  // namespace

CaseTable attention_cases() {
  using program::Kind;
  return {{Kind::attention, Kind::attention_grad, Kind::attention_sink_grad}, add_attention_cases};
}

CaseTable cache_cases() { return {{program::Kind::cache_write}, add_cache_cases}; }

}  // namespace snug::backends::test
