// A block's prompt: its keys and values are the block's own projections of the prompt's vectors,
// neither normed nor rotated. All tokens are the queries of a single segment, since all share the
// prompt's keys; so the gradients of the prompt are one sum over all tokens.
#include <string>
#include <string_view>
#include <vector>

#include "models/forward/forward_builder.h"
#include "models/forward/prompt_names.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/product/column_scale.h"

namespace snug::models {

using program::DType;
using program::TensorId;

// If the projections are one tensor, all of its rows are multiplied, since the tensor may be stored
// in 4 bits. Nothing reads the resulting queries.
ForwardBuilder::KeysAndValues ForwardBuilder::project_prompt(TensorId vectors,
                                                             const AttentionBlock& by) {
  const Projections& projections = by.query_key_value;
  if (!projections.is_fused()) {
    const TensorId keys = linear(vectors, projections.parts[1], "prompt.k");
    return {keys, by.keys_as_values ? keys : linear(vectors, projections.parts[2], "prompt.v")};
  }
  const TensorId all = linear(vectors, projections.whole(), "prompt.qkv");
  const bool is_one_group = projections.order == RowOrder::by_group && by.kv_heads == 1;
  if (projections.order == RowOrder::by_part || is_one_group) {
    const std::vector<TensorId> parts =
        split(all, projections, {"prompt.q", "prompt.k", "prompt.v"});
    return {parts[1], parts[2]};
  }
  std::vector<TensorId> copies;
  for (const auto& [name, part] : parts_of_heads(by)) {
    const std::string of_prompt = std::string("prompt.") + name;
    const TensorId rows = part_of_groups(all, of_prompt + ".in_groups", part);
    // The queries get a name but no copy, so that their gradient is known to be zero
    // (passes/gradient/differentiate.cpp).
    if (*name != 'q') copies.push_back(copy_of_groups(rows, of_prompt, part.groups));
  }
  return {copies[0], copies[1]};
}

TensorId ForwardBuilder::with_prompt(TensorId o, TensorId q, const AttentionBlock& by) {
  if (!by.prompt) return o;
  if (prompt_query_bounds_ == program::kNone) {
    const auto declare_bounds = [&](std::string_view name) {
      return declare(input_name(name), {1, 2}, DType::i32, program::Role::scalar,
                     program::Lifetime::run);
    };
    prompt_query_bounds_ = declare_bounds("prompt_query_bounds");
    prompt_key_bounds_ = declare_bounds("prompt_key_bounds");
  }
  const std::string module = stack_.layer_name(layer_) + "." + prompt_module(by);
  const TensorId vectors =
      trained(prompt_name(module), {by.prompt->tokens, stack_.hidden_size}, Precision::computed);
  const TensorId gates =
      trained(gate_name(module), {by.prompt->gate_of_heads ? by.heads : 1}, Precision::wide);
  const KeysAndValues prompt = project_prompt(vectors, by);
  const TensorId read = activation("prompt.attention", columns(q));
  const TensorId lse =
      builder_.activation(local_name("prompt.lse"), {by.heads, tokens()}, DType::f32);
  builder_.emit(program::Attention{.heads = by.heads,
                                   .kv_heads = by.kv_heads,
                                   .head_dim = by.head_dim,
                                   .scale = by.scale,
                                   .causal = false,
                                   .deterministic = options_.deterministic},
                {q, prompt.keys, prompt.values, prompt_query_bounds_, prompt_key_bounds_},
                {read, lse});
  const TensorId gated = activation("prompt.gated", columns(q));
  builder_.emit(program::ScaleColumns{}, {read, gates}, {gated});
  const TensorId sum = activation("attention.prompted", columns(q));
  builder_.emit(program::Add{}, {o, gated}, {sum});
  return sum;
}

}  // namespace snug::models
