// The building blocks of forward programs: the program's inputs and weights by name, and linears,
// norms and views of activations. models/forward/forward.cpp combines them into blocks.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/blocks.h"
#include "models/forward/forward.h"
#include "program/ir/builder.h"

namespace snug::models {

class ForwardBuilder {
 protected:
  using TensorId = program::TensorId;

  // Both arguments must outlive the builder.
  ForwardBuilder(const Stack& stack, const ForwardOptions& options);

  TensorId declare(std::string name, const program::Shape& shape, program::DType dtype,
                   program::Role role, program::Lifetime lifetime, int32_t layer = -1);
  // The name of a batch tensor or a result, which includes the program's name if the options say
  // so.
  std::string input_name(std::string_view name) const;
  TensorId batch(std::string_view name, const program::Shape& shape);
  // A batch tensor of the current stream by its whole name.
  TensorId batch_named(std::string_view name, const program::Shape& shape);
  void declare_weights();

  // A constant of the network, rounded to the compute type, as transformers does.
  float in_compute_type(float value) const;
  // The tokens of the current stream.
  int64_t tokens() const { return options_.tokens[stream_]; }
  int64_t layers() const { return stack_.layer_count(); }
  int64_t hidden_size() const;
  bool is_encoder() const { return stream_ == base::TokenStream::encoder; }
  bool runs_encoder() const { return stack_.encoder && options_.tokens.has_encoder(); }
  // The weight of a module of the current layer, or of a module that belongs to no layer
  // ("lm_head.weight").
  TensorId weight(const std::string& of_module) const;
  TensorId weight_named(const std::string& name) const;
  int64_t rows(TensorId id) const { return builder_.program().tensor(id).shape[0]; }
  int64_t columns(TensorId id) const { return builder_.program().tensor(id).shape.columns(); }

  // A tensor of an adapter, which is added to the program when it is first asked for. `wide`: f32
  // whatever the compute type is, for tensors with few elements.
  enum class Precision : uint8_t { computed, wide };
  TensorId trained(const std::string& name, const program::Shape& shape, Precision precision);
  // Adapter v2's bias and scale (out) for a linear of the current layer or the head, if the stack
  // adjusts them.
  struct Adjustment {
    TensorId bias = program::kNone;
    TensorId scale = program::kNone;
  };
  Adjustment adjustment(const std::string& of_module, int64_t out);

  // The name of an activation of the current layer in the program. Outside of layers, the names of
  // activations in the encoder's stream begin with the stream's name.
  std::string local_name(std::string_view name) const;
  TensorId activation(std::string_view name, int64_t width) {
    return activation(name, width, tokens());
  }
  TensorId activation(std::string_view name, int64_t width, int64_t rows);
  // The residual stream that enters layer `index`. It belongs to that layer; after the last layer
  // of the encoder or the decoder, it belongs to none.
  TensorId residual_stream(int64_t index);

  TensorId norm(TensorId x, const Norm& by, std::string_view name);
  TensorId norm_if(const std::optional<Norm>& given, TensorId x, std::string_view name);
  void emit_norm(TensorId x, const Norm& by, TensorId y);
  // A tensor of ones, where a norm has no weight.
  TensorId ones(int64_t width);

  // x (rows, in) -> y (rows, out)
  TensorId linear(TensorId x, const Linear& by, std::string_view name);
  // Applies a linear whose module is given by its whole name.
  TensorId linear_named(TensorId x, const Linear& by, std::string_view name);
  // Returns one tensor for each part. Linears with the same input are adjacent in the program, so
  // that a target may compute them together.
  std::vector<TensorId> project(TensorId x, const Projections& projections,
                                const std::vector<const char*>& names);
  // The columns of each part in the output of fused projections.
  std::vector<TensorId> split(TensorId all, const Projections& projections,
                              const std::vector<const char*>& names);
  // One part of every group, for rows that are stored group by group; seen as one row for each
  // group.
  struct GroupPart {
    int64_t groups = 0;
    int64_t offset = 0;  // of the part within its group
    int64_t width = 0;
  };
  TensorId part_of_groups(TensorId all, std::string_view name, const GroupPart& part);
  // Copies such a part (rows x groups, width) into (rows, groups x width), since attention reads
  // the heads of a row side by side.
  TensorId copy_of_groups(TensorId part, std::string_view name, int64_t groups);
  // The places of queries, keys and values in fused projections stored by group or by block;
  // without the queries if these are apart.
  struct NamedPart {
    const char* name;
    GroupPart part;
  };
  static std::vector<NamedPart> parts_of_heads(const AttentionBlock& by);
  // Copies queries, keys and values out of `all`, the output of such fused projections.
  std::vector<TensorId> copy_heads(TensorId all, const AttentionBlock& by);

  // Declares the rotary frequencies; and makes the rotary tables that blocks read for a stream's
  // positions.
  void declare_frequencies();
  void make_rotary_tables(base::TokenStream stream, TensorId positions);
  // The rows of x, which belong to stream `rows.stream`, with their first `rows.heads` heads
  // rotated (0: all heads). Returns x itself where the block does not rotate.
  struct Rotated {
    base::TokenStream stream = base::TokenStream::decoder;
    int64_t heads = 0;
    bool are_queries = false;  // alone, so that their table may be another than that of the keys
  };
  TensorId rope(TensorId x, const AttentionBlock& by, const char* name, const Rotated& rows);

  // Returns o plus the output of attending from q to the block's prompt; o itself where the block
  // has no prompt.
  TensorId with_prompt(TensorId o, TensorId q, const AttentionBlock& by);

  // x (tokens, hidden) -> y (tokens, hidden). With a cache, sequences go on with their states.
  TensorId gated_delta(TensorId x, const GatedDeltaBlock& by);
  TensorId short_convolution(TensorId x, const ShortConvolutionBlock& by);

  // Makes what the stack's layers read besides the residual stream, if they do, from the ids of the
  // tokens and their rows of the embedding.
  void make_layer_inputs(TensorId ids, TensorId embedded);
  // x (tokens, hidden) -> y (tokens, hidden)
  TensorId with_layer_input(TensorId x, const LayerInputBlock& by);

  // x (tokens, hidden) -> y (tokens, hidden)
  TensorId mlp(TensorId x, const GatedMlp& by);
  TensorId mlp(TensorId x, const Mlp& by);
  // activation(gate(x)) * up(x), the input of `down`. `prefix`: of the names of activations.
  TensorId gated_hidden(TensorId x, const GatedMlp& by, const std::string& prefix);
  // x (tokens, hidden) -> y (tokens, hidden). In between, the rows of all tokens are sorted by
  // expert.
  TensorId experts(TensorId x, const ExpertsBlock& by);
  TensorId shared_expert(TensorId x, const SharedExpert& by);
  TensorId router_input(TensorId x, const RouterInput& by);
  // weights and ids (tokens, k): the weights times the elements of a tensor (experts) by id.
  TensorId with_expert_scales(TensorId weights, TensorId ids, const std::string& scales);
  // Emits `router_loss` (1) for all layers with experts, if the options ask for it and there are
  // such layers.
  void balance_experts();

  // Emits the losses of the decoder's tokens, or the logits of the rows that the options select,
  // from the final norm's output (tokens, hidden).
  void head(TensorId normed);

  TensorId view(TensorId base, std::string_view name, const program::Shape& shape,
                const program::View& of);
  // Columns [offset, offset + width) of a (rows, columns) activation.
  TensorId columns_of(TensorId base, std::string_view name, int64_t offset, int64_t width);
  // A view of the elements in another shape.
  TensorId reshaped(TensorId base, std::string_view name, const program::Shape& shape);

  const Stack& stack_;
  const ForwardOptions& options_;
  program::Builder builder_;
  base::TokenStream stream_ = base::TokenStream::decoder;
  int64_t layer_ = 0;
  std::string branch_prefix_;  // of names of activations of the current branch
  TensorId query_bounds_ = program::kNone;

 private:
  std::unordered_map<std::string, TensorId> weights_;
  // The frequencies of the stack's first and second rotary table, and the tables of each stream.
  std::array<TensorId, 2> frequencies_{program::kNone, program::kNone};
  std::array<std::array<TensorId, 2>, 2> rotary_tables_{
      {{program::kNone, program::kNone}, {program::kNone, program::kNone}}};
  // The decoder's first table for queries, where these grow with their positions.
  TensorId query_table_ = program::kNone;
  TensorId apply(TensorId x, const Linear& by, std::array<TensorId, 2> weight_and_bias,
                 std::string_view name);
  TensorId layer_inputs_ = program::kNone;  // (tokens, layers * width)
  std::vector<TensorId> balanced_;          // counts and sums for each layer with experts
  int64_t balanced_choices_ = 0;            // experts per token in each of them
  // The bounds with which prompts are attended to: all tokens as queries, and a prompt's vectors as
  // keys.
  TensorId prompt_query_bounds_ = program::kNone, prompt_key_bounds_ = program::kNone;

  struct KeysAndValues {
    TensorId keys = program::kNone;
    TensorId values = program::kNone;
  };
  KeysAndValues project_prompt(TensorId vectors, const AttentionBlock& by);

  // What a gated delta net makes of its input: queries, keys and values, convolved, and gates.
  struct DeltaInputs {
    TensorId q = program::kNone, k = program::kNone, v = program::kNone;
    TensorId z = program::kNone, b = program::kNone, a = program::kNone;
  };
  DeltaInputs delta_inputs(TensorId x, const GatedDeltaBlock& by);
  DeltaInputs grouped_delta_inputs(TensorId x, const GatedDeltaBlock& by);
  // A causal convolution of filters (n, 1, width), without silu where it is plain: x (tokens, n) ->
  // (tokens, n). With a cache it keeps the sequences' last rows.
  TensorId convolve(TensorId x, TensorId filters, std::string_view name, bool plain = false);
  TensorId state_slots();
  TensorId kept_state(std::string_view name, int64_t columns, program::DType type);

  TensorId scaled_for_head(TensorId hidden);
  // w: the head's weight (vocab, hidden).
  void head_losses(TensorId hidden, TensorId w);
  void head_logits(TensorId hidden, TensorId w);
};

}  // namespace snug::models
