#include "models/forward.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "base/error.h"
#include "models/forward_builder.h"
#include "models/rope.h"
#include "models/weights.h"
#include "program/tensor_names.h"

namespace snug::models {
namespace {

using namespace program;  // NOLINT: this file speaks the program's words throughout

// A constant of the network in the type of the computation, which is how transformers has it.
float rounded(float value, DType type) {
  if (type == DType::bf16) return base::to_float(base::to_bfloat16(value));
  if (type == DType::f16) return base::to_float(base::to_float16(value));
  return value;
}

class Forward : ForwardBuilder {
 public:
  Forward(const Stack& stack, const ForwardOptions& options) : ForwardBuilder(stack, options) {}

  Program build() {
    declare_inputs();
    declare_weights();
    make_rotary_tables();
    TensorId hidden = embed();
    for (layer_ = 0; layer_ < layers(); ++layer_) {
      builder_.set_layer(static_cast<int32_t>(layer_));
      hidden = add_branches(hidden);
    }
    builder_.set_layer(-1);
    balance_experts();
    head(norm(hidden, stack_.final_norm, "final.norm"));
    return builder_.take();
  }

 private:
  void declare_inputs() {
    tokens_ = batch(kTokensName, {tokens()});
    const bool rotates = reads_rotary(stack_, false) || reads_rotary(stack_, true);
    if (rotates || !stack_.positions.empty()) positions_ = batch(kPositionsName, {tokens()});
    query_bounds_ = batch(kQueryBoundsName, {options_.segments, 2});
    key_bounds_ = query_bounds_;
    if (options_.cache_capacity > 0) {
      key_bounds_ = batch(kKeyBoundsName, {options_.segments, 2});
      slots_ = batch(kSlotsName, {tokens()});
    }
    if (reads_rotary(stack_, false))
      frequencies_ = declare_frequencies(frequencies_name(stack_.rotary, options_.sequence_tokens),
                                         stack_.rotary);
    if (reads_rotary(stack_, true))
      local_frequencies_ = declare_frequencies(local_frequencies_name(), *stack_.local_rotary);
  }

  TensorId declare_frequencies(std::string name, const Rotary& rotary) {
    return declare(std::move(name), {rotary.width / 2}, DType::f32, Role::scalar, Lifetime::run);
  }

  TensorId rotary_table(const char* name, const Rotary& rotary, TensorId frequencies) {
    const TensorId table = builder_.activation(name, {tokens(), rotary.width}, DType::f32);
    const auto factor = static_cast<float>(rotary.rope.attention_factor);
    builder_.emit(RotaryTable{.factor = factor}, {positions_, frequencies}, {table});
    return table;
  }

  void make_rotary_tables() {
    if (frequencies_ != kNone) rotary_ = rotary_table("rotary_table", stack_.rotary, frequencies_);
    if (local_frequencies_ != kNone)
      local_rotary_ = rotary_table("rotary_table.local", *stack_.local_rotary, local_frequencies_);
  }

  // Rows of the embedding, scaled, moved by their positions and normed where the stack says so. The
  // last of these makes the residual stream.
  TensorId embed() {
    const auto scale = static_cast<float>(stack_.embedding_scale);
    const bool has_positions = !stack_.positions.empty();
    int steps = (scale != 1.0F) + has_positions + stack_.embedding_norm.has_value();
    const auto result = [&](const char* name) {
      return steps-- == 0 ? residual_stream(0) : activation(name, stack_.hidden_size);
    };
    TensorId hidden = result("embedded");
    builder_.emit(Embedding{}, {weight(embedding_weight(stack_)), tokens_}, {hidden});
    if (scale != 1.0F) {
      const TensorId scaled = result("embedded.scaled");
      builder_.emit(Scale{.factor = rounded(scale, options_.compute)}, {hidden}, {scaled});
      hidden = scaled;
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

  // `rotated_heads` 0: all that x has. x itself where the block rotates nothing.
  TensorId rope(TensorId x, const AttentionBlock& attention, const char* name,
                int64_t rotated_heads = 0) {
    if (!attention.rotated) return x;
    const TensorId y = activation(name, columns(x));
    const bool local = attention.local_rotary;
    const int64_t width = local ? stack_.local_rotary->width : stack_.rotary.width;
    builder_.emit(Rope{.head_dim = attention.head_dim,
                       .rotated_heads = rotated_heads,
                       .rotary_dim = width == attention.head_dim ? 0 : width},
                  {x, local ? local_rotary_ : rotary_}, {y});
    return y;
  }

  // x (tokens, heads * head_dim), normed head by head or as a whole row.
  TensorId normed_heads(TensorId x, const std::optional<Norm>& given,
                        const AttentionBlock& attention, const char* which) {
    if (!given) return x;
    const std::string name = fmt::format("{}_norm", which);
    const int64_t width = columns(x);
    if (given->width != attention.head_dim) return norm(x, *given, name);
    const Shape heads{tokens() * width / given->width, given->width};
    const TensorId y = builder_.activation(local_name(name), heads, options_.compute);
    emit_norm(reshaped(x, fmt::format("{}.heads", which), heads), *given, y);
    return reshaped(y, fmt::format("{}.rows", name), {tokens(), width});
  }

  // Queries, keys and values of projections whose rows lie group by group. Each is copied, once,
  // since attention reads the heads of a row side by side.
  std::vector<TensorId> copy_groups(TensorId all, const AttentionBlock& attention) {
    const int64_t groups = attention.kv_heads;
    const int64_t head = attention.head_dim;
    std::vector<TensorId> results;
    int64_t offset = 0;
    for (const auto& [name, width] :
         {std::pair{"q", attention.heads / groups * head}, {"k", head}, {"v", head}}) {
      const TensorId part =
          part_of_groups(all, fmt::format("{}.in_groups", name), {groups, offset, width});
      results.push_back(copy_of_groups(part, name, groups));
      offset += width;
    }
    return results;
  }

  // Queries and keys, rotated if they are, and values: (tokens, heads * head_dim) each.
  std::vector<TensorId> query_key_value(TensorId x, const AttentionBlock& attention) {
    const Projections& projections = attention.query_key_value;
    const bool in_groups = projections.order == RowOrder::by_group && attention.kv_heads > 1;
    if (projections.is_fused() && !in_groups) {
      SNUG_CHECK(!attention.query_norm && !attention.key_norm, "norms of fused {}",
                 projections.fused);
      const TensorId all = rope(linear(x, projections.whole(), "qkv"), attention, "qkv_rope",
                                attention.heads + attention.kv_heads);
      return split(all, projections, {"q", "k", "v"});
    }
    std::vector<TensorId> heads =
        projections.is_fused() ? copy_groups(linear(x, projections.whole(), "qkv"), attention)
                               : project(x, projections, {"q", "k", "v"});
    heads[0] = normed_heads(heads[0], attention.query_norm, attention, "q");
    heads[1] = normed_heads(heads[1], attention.key_norm, attention, "k");
    heads[0] = rope(heads[0], attention, "q_rope");
    heads[1] = rope(heads[1], attention, "k_rope");
    return heads;
  }

  // Appends new rows to the layer's cache and returns it; the rows themselves without a cache.
  TensorId cached(TensorId rows, const char* name) {
    if (options_.cache_capacity == 0) return rows;
    const TensorId cache =
        declare(fmt::format("layers.{}.{}", layer_, name), {options_.cache_capacity, columns(rows)},
                options_.compute, Role::kv_cache, Lifetime::run, builder_.layer());
    builder_.emit(CacheWrite{}, {rows, slots_}, {}, {cache});
    return cache;
  }

  TensorId output_of(const AttentionBlock& attention, TensorId x) {
    const std::vector<TensorId> heads = query_key_value(x, attention);
    const TensorId o = activation("attention", columns(heads[0]));
    const TensorId lse =
        builder_.activation(local_name("lse"), {attention.heads, tokens()}, DType::f32);
    std::vector<TensorId> reads{heads[0], cached(heads[1], "key_cache"),
                                cached(heads[2], "value_cache"), query_bounds_, key_bounds_};
    if (!attention.sinks.empty()) reads.push_back(weight(attention.sinks));
    builder_.emit(Attention{.heads = attention.heads,
                            .kv_heads = attention.kv_heads,
                            .head_dim = attention.head_dim,
                            .scale = attention.scale,
                            .window = attention.window,
                            .softcap = attention.softcap,
                            .alibi_scale = attention.alibi_scale,
                            .sinks = !attention.sinks.empty(),
                            .segment_tokens = options_.segment_tokens[stream_],
                            .no_empty_segments = options_.no_empty_segments,
                            .deterministic = options_.deterministic},
                  std::move(reads), {o, lse});
    return linear(with_prompt(o, heads[0], attention), attention.output, "attention_output");
  }

  TensorId output_of(const GatedMlp& mlp, TensorId x) {
    const Projections& projections = mlp.gate_up;
    const std::vector<TensorId> both =
        projections.is_fused()
            ? split(linear(x, projections.whole(), "gate_up"), projections, {"gate", "up"})
            : project(x, projections, {"gate", "up"});
    const TensorId gated = activation("gated", mlp.down.in);
    switch (mlp.activation) {
      case Activation::silu:
        builder_.emit(SiluMul{}, {both[0], both[1]}, {gated});
        break;
      case Activation::gelu:
      case Activation::gelu_tanh:
        builder_.emit(GeluMul{.tanh = mlp.activation == Activation::gelu_tanh}, {both[0], both[1]},
                      {gated});
        break;
    }
    return linear(gated, mlp.down, "mlp_output");
  }

  TensorId output_of(const Mlp& mlp, TensorId x) {
    SNUG_CHECK(mlp.activation != Activation::silu, "a plain mlp has gelu, and {} has silu",
               mlp.up.module);
    const TensorId up = linear(x, mlp.up, "up");
    const TensorId activated = activation("activated", mlp.down.in);
    builder_.emit(Gelu{.tanh = mlp.activation == Activation::gelu_tanh}, {up}, {activated});
    return linear(activated, mlp.down, "mlp_output");
  }

  TensorId output_of(const ExpertsBlock& mixture, TensorId x) { return experts(x, mixture); }

  static std::string name_of(const Block& block) {
    return std::holds_alternative<AttentionBlock>(block) ? "attention" : "mlp";
  }

  // The stream after all branches of the layer at hand, which is the next layer's input.
  TensorId add_branches(const TensorId input) {
    const Layer& layer = stack_.layers[static_cast<size_t>(layer_)];
    TensorId stream = input;
    TensorId normed = kNone;
    for (size_t i = 0; i < layer.branches.size(); ++i) {
      const Branch& branch = layer.branches[i];
      const std::string name = name_of(branch.block);
      if (!layer.shares_norm(i))
        normed = norm_if(branch.norm_before, layer.parallel ? input : stream, name + "_norm");
      const TensorId result =
          std::visit([&](const auto& block) { return output_of(block, normed); }, branch.block);
      const TensorId output = norm_if(branch.norm_after, result, name + "_output_norm");
      const TensorId sum = i + 1 == layer.branches.size()
                               ? residual_stream(layer_ + 1)
                               : activation("middle", stack_.hidden_size);
      builder_.emit(Add{}, {stream, output}, {sum});
      stream = sum;
    }
    return stream;
  }

  void head(TensorId hidden) {
    const TensorId w = weight(stack_.tied_head ? embedding_weight(stack_) : head_weight(stack_));
    if (options_.head == Head::logits) return head_logits(hidden, w);
    const TensorId targets = batch(kTargetsName, {tokens()});
    const TensorId inverse =
        declare(std::string(kInverseTokensName), {1}, DType::f32, Role::batch, Lifetime::step);
    const TensorId losses = declare("losses", {tokens()}, DType::f32, Role::scalar, Lifetime::step);
    const TensorId loss =
        declare(std::string(kLossName), {1}, DType::f32, Role::scalar, Lifetime::step);
    std::vector<TensorId> reads{hidden, w, targets, inverse};
    const bool is_adjusted = stack_.adjusts_linears;
    if (is_adjusted) {
      SNUG_CHECK(!stack_.head_bias, "{} has a bias, and would have another", stack_.head);
      const Adjustment adjusting = adjustment(stack_.head, stack_.vocab_size);
      reads.insert(reads.end(), {adjusting.bias, adjusting.scale});
    } else if (stack_.head_bias) {
      reads.push_back(weight(bias_name(stack_.head)));
    }
    builder_.emit(LinearCrossEntropy{.softcap = stack_.logit_softcap,
                                     .bias = stack_.head_bias || is_adjusted,
                                     .gain = is_adjusted},
                  reads, {losses, loss});
  }

  // From rows of hidden to their logits: what is done one after the other, with what else each step
  // reads.
  struct HeadStep {
    const char* name;
    Attributes attributes;
    std::vector<TensorId> reads;
  };
  std::vector<HeadStep> head_steps(TensorId w) {
    std::vector<HeadStep> steps{{"final.product", Matmul{.transpose_b = true}, {w}}};
    if (stack_.head_bias)
      steps.push_back({"final.biased", AddBias{}, {weight(bias_name(stack_.head))}});
    if (stack_.adjusts_linears) {
      const Adjustment adjusting = adjustment(stack_.head, stack_.vocab_size);
      steps.push_back({"final.moved", AddBias{}, {adjusting.bias}});
      steps.push_back({"final.scaled", ScaleColumns{}, {adjusting.scale}});
    }
    if (stack_.logit_softcap > 0)
      steps.push_back({"final.capped", Softcap{stack_.logit_softcap}, {}});
    return steps;
  }

  void head_logits(TensorId hidden, TensorId w) {
    const TensorId rows = batch(kOutputRowsName, {options_.outputs});
    const TensorId selected = builder_.activation(
        "final.selected", {options_.outputs, stack_.hidden_size}, options_.compute);
    builder_.emit(Embedding{}, {hidden, rows}, {selected});
    const TensorId logits = declare(input_name(kLogitsName), {options_.outputs, stack_.vocab_size},
                                    DType::f32, Role::logits, Lifetime::step);
    std::vector<HeadStep> steps = head_steps(w);
    TensorId rows_so_far = selected;
    for (HeadStep& step : steps) {
      const TensorId result =
          &step == &steps.back()
              ? logits
              : builder_.activation(step.name, {options_.outputs, stack_.vocab_size}, DType::f32);
      step.reads.insert(step.reads.begin(), rows_so_far);
      builder_.emit(std::move(step.attributes), std::move(step.reads), {result});
      rows_so_far = result;
    }
    if (options_.candidates == 0) return;
    const auto found = [&](std::string_view name, DType dtype) {
      return declare(input_name(name), {options_.outputs, options_.candidates}, dtype, Role::scalar,
                     Lifetime::step);
    };
    builder_.emit(TopK{options_.candidates}, {logits},
                  {found(kLikeliestLogitsName, DType::f32), found(kLikeliestIdsName, DType::i32)});
  }

  TensorId tokens_ = kNone, positions_ = kNone, key_bounds_ = kNone;
  TensorId slots_ = kNone, frequencies_ = kNone, rotary_ = kNone;
  TensorId local_frequencies_ = kNone, local_rotary_ = kNone;
};

}  // namespace

Program forward(const Stack& stack, const ForwardOptions& options) {
  return Forward(stack, options).build();
}

}  // namespace snug::models
