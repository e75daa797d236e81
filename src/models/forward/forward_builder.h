// What forward programs are made with: the program's inputs and weights by name, and linears, norms
// and views of activations. models/forward/forward.cpp makes blocks of them.
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

  // Both must outlive it.
  ForwardBuilder(const Stack& stack, const ForwardOptions& options);

  TensorId declare(std::string name, const program::Shape& shape, program::DType dtype,
                   program::Role role, program::Lifetime lifetime, int32_t layer = -1);
  // The name of a batch tensor or a result: the program's own where the options say so.
  std::string input_name(std::string_view name) const;
  TensorId batch(std::string_view name, const program::Shape& shape);
  void declare_weights();

  // The tokens of the stream at hand.
  int64_t tokens() const { return options_.tokens[stream_]; }
  int64_t layers() const { return stack_.layer_count(); }
  int64_t hidden_size() const;
  bool is_encoder() const { return stream_ == base::TokenStream::encoder; }
  bool runs_encoder() const { return stack_.encoder && options_.tokens.has_encoder(); }
  // The tensor of a module of the layer at hand, or of none ("lm_head.weight").
  TensorId weight(const std::string& of_module) const;
  TensorId weight_named(const std::string& name) const;
  int64_t rows(TensorId id) const { return builder_.program().tensor(id).shape[0]; }
  int64_t columns(TensorId id) const { return builder_.program().tensor(id).shape.columns(); }

  // A tensor of an adapter, declared where it is asked for first; in the type of the computation,
  // or in f32 whatever that is where they are few.
  enum class Precision : uint8_t { computed, wide };
  TensorId trained(const std::string& name, const program::Shape& shape, Precision precision);
  // (out) each, of a linear of the layer at hand or of the head, where the stack adjusts them.
  struct Adjustment {
    TensorId bias = program::kNone;
    TensorId scale = program::kNone;
  };
  Adjustment adjustment(const std::string& of_module, int64_t out);

  // What an activation of the layer at hand is called in the program. Outside of layers those of
  // the encoder's stream have its name in front.
  std::string local_name(std::string_view name) const;
  TensorId activation(std::string_view name, int64_t width) {
    return activation(name, width, tokens());
  }
  TensorId activation(std::string_view name, int64_t width, int64_t rows);
  // The residual stream entering layer `index`; it belongs to the layer that reads it, and that of
  // the end of the layers at hand, the encoder's or the others, to none.
  TensorId residual_stream(int64_t index);

  TensorId norm(TensorId x, const Norm& by, std::string_view name);
  TensorId norm_if(const std::optional<Norm>& given, TensorId x, std::string_view name);
  void emit_norm(TensorId x, const Norm& by, TensorId y);

  // x (rows, in) -> y (rows, out)
  TensorId linear(TensorId x, const Linear& by, std::string_view name);
  // Multiplies by a linear whose module is a whole name.
  TensorId linear_named(TensorId x, const Linear& by, std::string_view name);
  // One tensor for each part. Linears of one input are neighbours in the program, so that a target
  // may compute them together.
  std::vector<TensorId> project(TensorId x, const Projections& projections,
                                const std::vector<const char*>& names);
  // The columns of each part of what fused projections gave.
  std::vector<TensorId> split(TensorId all, const Projections& projections,
                              const std::vector<const char*>& names);
  // A part of each group of rows that are stored group by group, seen as one row for each group.
  struct GroupPart {
    int64_t groups = 0;
    int64_t offset = 0;  // in a group
    int64_t width = 0;
  };
  TensorId part_of_groups(TensorId all, std::string_view name, const GroupPart& part);
  // A copy of such a part (rows x groups, width) as (rows, groups x width): attention reads the
  // heads of a row side by side.
  TensorId copy_of_groups(TensorId part, std::string_view name, int64_t groups);
  // Where queries, keys and values lie whose rows lie by group or by block; without the first where
  // queries are apart.
  struct NamedPart {
    const char* name;
    GroupPart part;
  };
  static std::vector<NamedPart> parts_of_heads(const AttentionBlock& by);
  // Queries, keys and values of `all`, the product of such projections. Each is copied, once.
  std::vector<TensorId> copy_heads(TensorId all, const AttentionBlock& by);

  // Frequencies, and the tables that blocks read, of the positions of a stream.
  void declare_frequencies();
  void make_rotary_tables(base::TokenStream stream, TensorId positions);
  // Rows of a stream, rotated. `rotated_heads` 0: all that x has. x itself where the block rotates
  // nothing.
  struct Rotated {
    base::TokenStream stream = base::TokenStream::decoder;
    int64_t heads = 0;
  };
  TensorId rope(TensorId x, const AttentionBlock& by, const char* name, const Rotated& rows);

  // o + what queries q read of the block's prompt; o itself where it has none.
  TensorId with_prompt(TensorId o, TensorId q, const AttentionBlock& by);

  // x (tokens, hidden) -> y (tokens, hidden)
  TensorId mlp(TensorId x, const GatedMlp& by);
  TensorId mlp(TensorId x, const Mlp& by);
  // x (tokens, hidden) -> y (tokens, hidden). Rows of all tokens are ordered by expert in between.
  TensorId experts(TensorId x, const ExpertsBlock& by);
  // `router_loss` (1), of all layers with experts, where the options ask for it and there are any.
  void balance_experts();

  // Losses of the decoder's tokens, or logits of the rows that the options ask for, of what the
  // final norm gives (tokens, hidden).
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
  std::string branch_prefix_;  // of names of activations of the branch at hand
  TensorId query_bounds_ = program::kNone;

 private:
  std::unordered_map<std::string, TensorId> weights_;
  // The frequencies of the stack's rotary and of its second one; the tables of each stream.
  std::array<TensorId, 2> frequencies_{program::kNone, program::kNone};
  std::array<std::array<TensorId, 2>, 2> rotary_tables_{
      {{program::kNone, program::kNone}, {program::kNone, program::kNone}}};
  TensorId apply(TensorId x, const Linear& by, std::array<TensorId, 2> weight_and_bias,
                 std::string_view name);
  std::vector<TensorId> balanced_;  // counts and sums of each layer with experts
  int64_t balanced_choices_ = 0;    // experts that each of them chooses
  // The bounds that prompts are read by: all tokens, and the vectors of a prompt.
  TensorId prompt_query_bounds_ = program::kNone, prompt_key_bounds_ = program::kNone;

  struct KeysAndValues {
    TensorId keys = program::kNone;
    TensorId values = program::kNone;
  };
  KeysAndValues project_prompt(TensorId vectors, const AttentionBlock& by);

  TensorId scaled_for_head(TensorId hidden);
  // w: the head's weight (vocab, hidden).
  void head_losses(TensorId hidden, TensorId w);
  void head_logits(TensorId hidden, TensorId w);
};

}  // namespace snug::models
