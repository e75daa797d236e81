#include "models/forward/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "base/error.h"
#include "models/config/rope.h"
#include "models/forward/forward_builder.h"
#include "models/forward/key_pages.h"
#include "models/stored/expert_names.h"
#include "models/weights.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/noise.h"
#include "program/kinds/elementwise/sigmoid_mul.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/product/embedding.h"

namespace snug::models {
namespace {

using namespace program;  // NOLINT: this file speaks the program's words throughout

class Forward : ForwardBuilder {
 public:
  Forward(const Stack& stack, const ForwardOptions& options) : ForwardBuilder(stack, options) {}

  Program build() {
    declare_inputs();
    declare_weights();
    if (runs_encoder()) make_rotary_tables(base::TokenStream::encoder, encoder_positions_);
    make_rotary_tables(base::TokenStream::decoder, positions_);
    if (runs_encoder()) encode();
    layer_ = stack_.encoder_layers();  // the first layer of the decoder
    const TensorId embedded = embed();
    make_layer_inputs(tokens_, embedded);
    const TensorId hidden = through_layers(embedded, layers());
    balance_experts();
    head(norm(hidden, stack_.final_norm, "final.norm"));
    return builder_.take();
  }

 private:
  bool has_cache() const { return options_.cache.is_kept(); }

  // Emits the encoder, whose output attention with `reads_encoder` reads.
  void encode() {
    stream_ = base::TokenStream::encoder;
    const TensorId hidden = through_layers(embed(), stack_.encoder_layers());
    encoded_ = norm(hidden, stack_.encoder->final_norm, "final.norm");
    stream_ = base::TokenStream::decoder;
  }

  // Emits the layers from the current one to `end`. Takes the residual stream that enters the
  // current layer and returns the one that enters layer `end`.
  TensorId through_layers(TensorId hidden, int64_t end) {
    for (; layer_ < end; ++layer_) {
      builder_.set_layer(static_cast<int32_t>(layer_));
      hidden = add_branches(hidden);
    }
    builder_.set_layer(-1);
    return hidden;
  }

  void declare_encoder_inputs() {
    SNUG_CHECK(runs_encoder() || has_cache(), "{} has nothing of the encoder",
               program::name_of(options_.program));
    stream_ = base::TokenStream::encoder;
    if (runs_encoder()) {
      encoder_tokens_ = batch(kTokensName, {tokens()});
      if (rotates_rows_of(stream_)) encoder_positions_ = batch(kPositionsName, {tokens()});
      encoder_bounds_ = batch(kQueryBoundsName, {options_.segments, 2});
    }
    declare_groups();
    stream_ = base::TokenStream::decoder;
  }

  // The batch tensors of the current stream's groups of keys. A program that does not run the
  // encoder writes no keys of its stream.
  void declare_groups() {
    for (const KeyPool& pool : options_.cache.pools) {
      if (pool.group.stream != stream_) continue;
      const auto of_group = [&](std::string_view name, const Shape& shape) {
        return batch_named(group_name(pool.group, name), shape);
      };
      GroupInputs inputs{pool};
      inputs.key_bounds = of_group(kKeyBoundsName, {options_.segments, 2});
      if (!is_encoder() || runs_encoder()) inputs.slots = of_group(kSlotsName, {tokens()});
      inputs.pages = of_group(kPagesName, {options_.segments, table_pages()});
      groups_.push_back(inputs);
    }
  }

  int64_t table_pages() const {
    return pages_of(options_.cache.capacity[stream_], options_.cache.page_tokens);
  }

  void declare_inputs() {
    if (stack_.encoder) declare_encoder_inputs();
    tokens_ = batch(kTokensName, {tokens()});
    if (rotates_rows_of(stream_) || !stack_.positions.empty())
      positions_ = batch(kPositionsName, {tokens()});
    query_bounds_ = batch(kQueryBoundsName, {options_.segments, 2});
    declare_groups();
    declare_frequencies();
  }

  bool rotates_rows_of(base::TokenStream stream) const {
    return reads_rotary(stack_, stream, false) || reads_rotary(stack_, stream, true);
  }

  // `random`, which both streams read.
  TensorId random() {
    const TensorId known = builder_.program().find(kRandomName);
    if (known != kNone) return known;
    return declare(std::string(kRandomName), {2}, DType::i32, Role::batch, Lifetime::step);
  }

  void add_noise(TensorId rows, TensorId noisy) {
    const EmbeddingNoise& noise = options_.noise;
    builder_.emit(AddNoise{.alpha = static_cast<float>(noise.alpha),
                           .row_length = tokens() / noise.rows,
                           .seed = noise.seed,
                           .site = is_encoder() ? 1 : 0},
                  {rows, is_encoder() ? encoder_bounds_ : query_bounds_, random()}, {noisy});
  }

  // The rows of the embedding; scaled, with noise and positions added, and normed where stack and
  // options say so. The last of these operations writes the residual stream.
  TensorId embed() {
    const auto scale = static_cast<float>(stack_.embedding_scale);
    const bool has_positions = !stack_.positions.empty();
    const bool is_noisy = options_.noise.alpha > 0;
    int steps = (scale != 1.0F) + is_noisy + has_positions + stack_.embedding_norm.has_value();
    const auto result = [&](const char* name) {
      return steps-- == 0 ? residual_stream(layer_) : activation(name, hidden_size());
    };
    TensorId hidden = result("embedded");
    const bool has_own = is_encoder() && !stack_.encoder->embedding.empty();
    const std::string& table = has_own ? stack_.encoder->embedding : stack_.embedding;
    builder_.emit(Embedding{},
                  {weight(weight_name(table)), is_encoder() ? encoder_tokens_ : tokens_}, {hidden});
    if (scale != 1.0F) {
      const TensorId scaled = result("embedded.scaled");
      builder_.emit(Scale{.factor = in_compute_type(scale)}, {hidden}, {scaled});
      hidden = scaled;
    }
    if (is_noisy) {
      const TensorId noisy = result("embedded.noisy");
      add_noise(hidden, noisy);
      hidden = noisy;
    }
    if (has_positions) {
      const TensorId rows = activation("position_rows", stack_.hidden_size);
      builder_.emit(Embedding{}, {weight(weight_name(stack_.positions)), positions_}, {rows});
      const TensorId sum = result("embedded.placed");
      builder_.emit(Add{}, {hidden, rows}, {sum});
      hidden = sum;
    }
    if (stack_.embedding_norm) {
      const TensorId normed = result("embedded.normed");
      emit_norm(hidden, *stack_.embedding_norm, normed);
      hidden = normed;
    }
    return hidden;
  }

  // x (tokens, heads * head_dim), with each head or each whole row normed.
  TensorId normed_heads(TensorId x, const std::optional<Norm>& given,
                        const AttentionBlock& attention, const char* which) {
    if (!given) return x;
    const std::string name = fmt::format("{}_norm", which);
    const int64_t width = rows(x) * columns(x) / tokens();
    if (given->width != attention.head_dim) return norm(x, *given, name);
    const Shape heads{tokens() * width / given->width, given->width};
    const TensorId y = builder_.activation(local_name(name), heads, options_.compute);
    const bool is_by_head = columns(x) == given->width;
    emit_norm(is_by_head ? x : reshaped(x, fmt::format("{}.heads", which), heads), *given, y);
    const TensorId normed = reshaped(y, fmt::format("{}.rows", name), {tokens(), width});
    if (given->heads == 0) return normed;
    const TensorId y_of_heads = activation(fmt::format("{}.scaled", name), width);
    builder_.emit(ScaleColumns{}, {normed, weight(weight_of_heads(given->module, given->heads))},
                  {y_of_heads});
    return y_of_heads;
  }

  // Queries and keys, rotated if the block rotates them, and values: (tokens, heads * head_dim)
  // each.
  std::vector<TensorId> query_key_value(TensorId x, const AttentionBlock& attention) {
    const Projections& projections = attention.query_key_value;
    if (attention.reads_encoder) return cross_heads(x, attention);
    if (attention.keys_of_layer) return queries(x, attention);
    const bool in_groups = projections.order == RowOrder::by_block ||
                           (projections.order == RowOrder::by_group && attention.kv_heads > 1);
    if (projections.is_fused() && !in_groups) {
      SNUG_CHECK(!attention.query_norm && !attention.key_norm, "norms of fused {}",
                 projections.fused);
      const TensorId all = rope(linear(x, projections.whole(), "qkv"), attention, "qkv_rope",
                                {stream_, attention.heads + attention.kv_heads});
      return split(all, projections, {"q", "k", "v"});
    }
    std::vector<TensorId> heads =
        projections.is_fused() ? copy_heads(linear(x, projections.whole(), "qkv"), attention)
                               : project(x, projections,
                                         attention.keys_as_values ? std::vector{"q", "k"}
                                                                  : std::vector{"q", "k", "v"});
    if (attention.keys_as_values) {
      // Both norms read one view of what the projection gives.
      if (attention.kv_heads > 1)
        heads[1] =
            reshaped(heads[1], "kv.heads", {tokens() * attention.kv_heads, attention.head_dim});
      heads.push_back(heads[1]);
    }
    if (attention.output_gate) {
      // A head's query and its gate lie side by side.
      const int64_t width = attention.head_dim;
      const TensorId both = heads[0];
      heads[0] = part_of_groups(both, "q.heads", {attention.heads, 0, width});
      heads.push_back(part_of_groups(both, "q.gates", {attention.heads, width, width}));
    }
    const auto norm_both = [&] {
      heads[0] = normed_heads(heads[0], attention.query_norm, attention, "q");
      heads[1] = normed_heads(heads[1], attention.key_norm, attention, "k");
    };
    heads[2] = normed_heads(heads[2], attention.value_norm, attention, "v");
    if (!attention.normed_after_rotation) norm_both();
    heads[0] = rope(heads[0], attention, "q_rope", {.stream = stream_, .are_queries = true});
    heads[1] = rope(heads[1], attention, "k_rope", {stream_});
    if (attention.normed_after_rotation) norm_both();
    return heads;
  }

  // Queries alone, of a block that reads the keys and values of another layer.
  std::vector<TensorId> queries(TensorId x, const AttentionBlock& attention) {
    const TensorId q = linear(x, attention.query_key_value.parts[0], "q");
    return {rope(normed_heads(q, attention.query_norm, attention, "q"), attention, "q_rope",
                 {.stream = stream_, .are_queries = true})};
  }

  // Queries, keys and values of cross-attention. In a program without the encoder, the keys and
  // values come from the caches.
  std::vector<TensorId> cross_heads(TensorId x, const AttentionBlock& attention) {
    const Projections& projections = attention.query_key_value;
    const std::vector<Linear>& parts = projections.parts;
    const TensorId q =
        rope(linear(x, parts[0], "q"), attention, "q_rope", {base::TokenStream::decoder});
    if (!runs_encoder()) return {q, kNone, kNone};
    const TensorId read = attention.encoder_projection
                              ? linear_named(encoded_, *attention.encoder_projection, "projected")
                              : encoded_;
    std::vector<TensorId> heads{q};
    if (projections.is_fused()) {
      SNUG_CHECK(projections.queries_apart && projections.order == RowOrder::by_block,
                 "keys and values across of {}", projections.fused);
      for (const TensorId part : copy_heads(linear(read, projections.whole(), "kv"), attention))
        heads.push_back(part);
    } else {
      heads.push_back(linear(read, parts[1], "k"));
      heads.push_back(linear(read, parts[2], "v"));
    }
    heads[1] = rope(heads[1], attention, "k_rope", {base::TokenStream::encoder});
    return heads;
  }

  // The batch tensors of a group of keys, and its pages.
  struct GroupInputs {
    KeyPool pool;
    TensorId key_bounds = kNone, slots = kNone, pages = kNone;
  };

  // Those that the block reads; nullptr without caches, and within the encoder.
  const GroupInputs* group_of(const AttentionBlock& attention) const {
    if (!has_cache() || is_encoder()) return nullptr;
    const auto found = std::ranges::find(groups_, key_group(attention),
                                         [](const GroupInputs& of) { return of.pool.group; });
    SNUG_CHECK(found != groups_.end(), "no cache for a window of {}", attention.window);
    return &*found;
  }

  // A layer's keys or values, and their scales where they have 8 bits.
  struct Cached {
    TensorId rows = kNone, scales = kNone;
  };

  // Appends new rows, if there are any, to the layer's cache ("key" or "value") and returns the
  // cache. Without a group, returns the rows themselves.
  Cached cached(TensorId new_rows, const AttentionBlock& attention, std::string_view which) {
    const GroupInputs* group = group_of(attention);
    if (group == nullptr) return {new_rows};
    const bool quantized = options_.cache.quantized;
    const int64_t rows = group->pool.pages * options_.cache.page_tokens;
    const auto declare_cache = [&](const char* what, const Shape& shape, DType type) {
      return declare(local_name(fmt::format("{}_{}", which, what)), shape, type, Role::kv_cache,
                     Lifetime::step, builder_.layer());
    };
    Cached cache{declare_cache("cache", {rows, attention.kv_heads * attention.head_dim},
                               quantized ? DType::u8 : options_.compute)};
    std::vector<TensorId> updates{cache.rows};
    if (quantized) {
      cache.scales = declare_cache("scales", {attention.kv_heads, rows}, DType::f32);
      updates.push_back(cache.scales);
    }
    if (new_rows != kNone)
      builder_.emit(CacheWrite{.quantized = quantized}, {new_rows, group->slots}, {},
                    std::move(updates));
    return cache;
  }

  struct CachedHeads {
    Cached keys, values;
  };

  // Keys and values of the block, or those that it reads of another layer.
  CachedHeads keys_and_values(const std::vector<TensorId>& heads, const AttentionBlock& attention) {
    if (attention.keys_of_layer) return shared_heads_.at(*attention.keys_of_layer);
    const CachedHeads both{cached(heads[1], attention, "key"),
                           cached(heads[2], attention, "value")};
    if (has_sharing_layers(layer_)) {
      for (const TensorId made : {heads[1], heads[2]}) leave_layer(made);
      shared_heads_.emplace(layer_, both);
    }
    return both;
  }

  bool has_sharing_layers(int64_t layer) const {
    return std::ranges::any_of(stack_.layers, [&](const Layer& other) {
      return std::ranges::any_of(other.branches, [&](const Branch& branch) {
        const auto* attention = std::get_if<AttentionBlock>(&branch.block);
        return attention != nullptr && attention->keys_of_layer == layer;
      });
    });
  }

  // Says of a tensor that later layers read that it belongs to no layer, as a residual stream does
  // that leaves one: layers that are computed again keep it.
  void leave_layer(TensorId id) {
    builder_.tensor(builder_.program().owner(id)).layer = -1;
    builder_.tensor(id).layer = -1;
  }

  TensorId key_bounds_of(const AttentionBlock& attention) const {
    if (const GroupInputs* group = group_of(attention)) return group->key_bounds;
    return is_encoder() || attention.reads_encoder ? encoder_bounds_ : query_bounds_;
  }

  // The longest segment of queries and keys; 0 (unknown) where queries and keys come from two
  // streams of different lengths.
  int64_t segment_tokens(const AttentionBlock& attention) const {
    const base::PerStream<int64_t>& known = options_.segment_tokens;
    const bool is_known = known.has_encoder() == stack_.encoder.has_value();
    return is_known && !attention.reads_encoder ? known[stream_] : 0;
  }

  // What heads give, multiplied by the sigmoids of their gates, if they have any; these come after
  // queries, keys and values.
  TensorId gated(TensorId o, const std::vector<TensorId>& heads, const AttentionBlock& attention) {
    if (!attention.output_gate) return o;
    const Shape each{tokens() * attention.heads, attention.head_dim};
    const TensorId y = builder_.activation(local_name("attention_gated"), each, options_.compute);
    builder_.emit(SigmoidMul{}, {heads[3], reshaped(o, "attention.heads", each)}, {y});
    return reshaped(y, "attention_gated.rows", {tokens(), attention.heads * attention.head_dim});
  }

  TensorId output_of(const AttentionBlock& attention, TensorId x) {
    const std::vector<TensorId> heads = query_key_value(x, attention);
    const TensorId o = activation("attention", columns(heads[0]));
    const TensorId lse =
        builder_.activation(local_name("lse"), {attention.heads, tokens()}, DType::f32);
    const auto [keys, values] = keys_and_values(heads, attention);
    std::vector<TensorId> reads{heads[0], keys.rows, values.rows,
                                is_encoder() ? encoder_bounds_ : query_bounds_,
                                key_bounds_of(attention)};
    if (!attention.sinks.empty()) reads.push_back(weight(attention.sinks));
    const std::optional<RelativeBias>& bias = attention.relative_bias;
    if (bias) reads.push_back(weight_named(weight_name(bias->module)));
    const GroupInputs* group = group_of(attention);
    if (group != nullptr) reads.push_back(group->pages);
    const bool quantized = keys.scales != kNone;
    if (quantized) reads.insert(reads.end(), {keys.scales, values.scales});
    builder_.emit(Attention{.heads = attention.heads,
                            .kv_heads = attention.kv_heads,
                            .head_dim = attention.head_dim,
                            .scale = attention.scale,
                            .causal = attention.causal,
                            .window = attention.window,
                            .softcap = attention.softcap,
                            .alibi_scale = attention.alibi_scale,
                            .sinks = !attention.sinks.empty(),
                            .relative_bias = bias.has_value(),
                            .max_distance = bias ? bias->max_distance : 0,
                            .segment_tokens = segment_tokens(attention),
                            .no_empty_segments = options_.no_empty_segments,
                            .deterministic = options_.deterministic,
                            .paged = group != nullptr,
                            .quantized = quantized,
                            .page_tokens = group != nullptr ? options_.cache.page_tokens : 0},
                  std::move(reads), {o, lse});
    const TensorId given = gated(with_prompt(o, heads[0], attention), heads, attention);
    return linear(given, attention.output, "attention_output");
  }

  TensorId output_of(const GatedDeltaBlock& delta, TensorId x) { return gated_delta(x, delta); }
  TensorId output_of(const ShortConvolutionBlock& short_one, TensorId x) {
    return short_convolution(x, short_one);
  }
  TensorId output_of(const GatedMlp& gated, TensorId x) { return mlp(x, gated); }
  TensorId output_of(const LayerInputBlock& input, TensorId x) {
    return with_layer_input(x, input);
  }
  TensorId output_of(const Mlp& plain, TensorId x) { return mlp(x, plain); }
  TensorId output_of(const ExpertsBlock& mixture, TensorId x) { return experts(x, mixture); }

  static std::string name_of(const Block& block) {
    const bool mixes_tokens = std::holds_alternative<AttentionBlock>(block) || keeps_state(block);
    if (std::holds_alternative<LayerInputBlock>(block)) return "input";
    return mixes_tokens ? "attention" : "mlp";
  }

  // The prefix of activation names, which separates a layer's self-attention from its
  // cross-attention.
  static const char* prefix_of(const Block& block) {
    const auto* attention = std::get_if<AttentionBlock>(&block);
    return attention != nullptr && attention->reads_encoder ? "cross_" : "";
  }

  TensorId scaled(TensorId x, float factor, const std::string& name) {
    if (factor == 1.0F) return x;
    const TensorId y = activation(name + "_output.scaled", columns(x));
    builder_.emit(Scale{.factor = factor}, {x}, {y});
    return y;
  }

  // Emits all branches of the current layer and returns the residual stream after them, the next
  // layer's input.
  TensorId add_branches(const TensorId input) {
    const Layer& layer = stack_.layer(layer_);
    TensorId stream = input;
    TensorId normed = kNone;
    for (size_t i = 0; i < layer.branches.size(); ++i) {
      const Branch& branch = layer.branches[i];
      const std::string name = name_of(branch.block);
      branch_prefix_ = prefix_of(branch.block);
      if (!layer.shares_norm(i))
        normed = norm_if(branch.norm_before, layer.parallel ? input : stream, name + "_norm");
      const TensorId result =
          std::visit([&](const auto& block) { return output_of(block, normed); }, branch.block);
      const TensorId output =
          scaled(norm_if(branch.norm_after, result, name + "_output_norm"), branch.scale, name);
      const bool is_last = i + 1 == layer.branches.size();
      const std::string between = i == 0 || !branch_prefix_.empty() ? "middle" : name + "_sum";
      const TensorId sum =
          is_last && layer.factor.empty()
              ? residual_stream(layer_ + 1)
              : activation(is_last ? std::string("unscaled") : between, hidden_size());
      builder_.emit(Add{}, {stream, output}, {sum});
      stream = sum;
    }
    branch_prefix_.clear();
    if (layer.factor.empty()) return stream;
    const TensorId leaving = residual_stream(layer_ + 1);
    builder_.emit(ScaleColumns{}, {stream, weight(layer.factor)}, {leaving});
    return leaving;
  }

  TensorId encoder_tokens_ = kNone, encoder_bounds_ = kNone;
  TensorId encoder_positions_ = kNone, encoded_ = kNone;
  TensorId tokens_ = kNone, positions_ = kNone;
  std::vector<GroupInputs> groups_;
  std::map<int64_t, CachedHeads> shared_heads_;  // by layer, those that later layers read
};

}  // namespace

Program forward(const Stack& stack, const ForwardOptions& options) {
  return Forward(stack, options).build();
}

}  // namespace snug::models
