// What models are made of: the vocabulary in which the file of a family describes its network.
//
//   stack    an encoder, if there is one; embedding, layers, final norm, head
//   encoder  layers that read all of their input, and a final norm
//   layer    branches, one after another or side by side, each of which adds to the residual stream
//   branch   x + norm_after(block(norm_before(x))), where either norm may be absent
//   block    attention, an mlp that is gated or plain, or a mixture of gated mlps
//
// Every module that has weights carries its name in Hugging Face's folders. Modules of a layer are
// named within it: "self_attn.q_proj" is the tensor "model.layers.0.self_attn.q_proj.weight" in
// layer 0. models/weights.h lists the tensors of a stack, models/forward/forward.h makes its
// program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/config/rope_config.h"

namespace snug::models {

enum class NormForm : uint8_t {
  rms,             // x / sqrt(mean(x^2) + epsilon) * w
  rms_one_plus_w,  // the same times 1 + w, where files hold w
  layer,  // (x - mean(x)) / sqrt(variance(x) + epsilon) * w, plus a bias where there is one
};

// A norm of the last `width` elements.
struct Norm {
  std::string module;
  int64_t width = 0;
  float epsilon = 0;
  NormForm form = NormForm::rms;
  bool bias = false;
};

// gelu is the exact form, gelu_tanh the approximation; relu is for an mlp without a gate.
enum class Activation : uint8_t { silu, gelu, gelu_tanh, relu };

// y = x W^T, plus a bias where there is one. W is stored (out, in), or (in, out) where files hold
// its transpose; in 4 bits it is (out, in) in any case, as bitsandbytes has it.
struct Linear {
  std::string module;
  int64_t out = 0;
  int64_t in = 0;
  bool bias = false;
  bool transposed = false;
  bool in_16_bits = false;  // also where other linears are stored in 4, as bitsandbytes keeps it
};

// In which order fused projections hold their rows.
enum class RowOrder : uint8_t {
  by_part,   // all of the first, all of the second, ...
  by_group,  // of queries, keys and values: the queries that share a key head, that key, its value;
             // then those of the next key head
  by_block,  // so many blocks, each with the heads' share of queries, then of values, then of keys
};

// Linears that read one input. How they are stored follows from `fused`: where it is empty, each
// has tensors of its own; otherwise the module of that name holds the rows of all, in `order`, and
// is one linear to everything else: to the forward pass, LoRA and quantisation.
struct Projections {
  std::vector<Linear> parts;
  std::string fused;
  RowOrder order = RowOrder::by_part;
  int64_t blocks = 1;          // of by_block
  bool queries_apart = false;  // the first part has tensors of its own next to those of the others

  bool is_fused() const { return !fused.empty(); }
  // The linear that holds the rows of all parts, or of all but queries that are apart.
  Linear whole() const {
    const size_t first = queries_apart ? 1 : 0;
    Linear linear = parts[first];
    linear.module = fused;
    linear.out = 0;
    for (size_t part = first; part < parts.size(); ++part) linear.out += parts[part].out;
    return linear;
  }
};

// A table of cosines and sines by position, which rotates the first `width` elements of a head.
struct Rotary {
  int64_t width = 0;
  RopeConfig rope;
  bool interleaved = false;  // which elements turn together: see program/kinds/attention/rope.h
};

// A table (buckets, heads) of numbers that are added to scores by the distance of a key, as T5 has
// it (bucket_of in program/kinds/attention/attention.h). `module` is its whole name: layers that
// name one table share it, and it belongs to none of them.
struct RelativeBias {
  std::string module;
  int64_t buckets = 0;
  int64_t max_distance = 0;
};

// Learned vectors, by which a block of attention sees keys and values that are no token's
// (LLaMA-Adapter, Zhang et al. 2023): the block's own projections of them, neither normed nor
// rotated. What a head reads there, in a softmax of its own, is multiplied by a gate and added to
// what it reads of tokens, before the output.
struct Prompt {
  int64_t tokens = 0;
  bool gate_of_heads = false;  // a gate for each head; else one for all
};

// Attention of `heads` query heads, of which heads / kv_heads share a key and value head.
struct AttentionBlock {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  Projections query_key_value;
  // Before the rotation. A norm whose width is head_dim applies to each head by itself, any other
  // to all heads of a token at once. Fused projections have none.
  std::optional<Norm> query_norm;
  std::optional<Norm> key_norm;
  float scale = 1.0F;    // of the scores
  float softcap = 0.0F;  // c: a scaled score s becomes c tanh(s / c); 0: no cap
  int64_t window = 0;    // a query sees this many keys, itself included; 0: all before it
  // The tensor (heads) of the logits that join each query's softmax without a value, as files call
  // it; empty: none do.
  std::string sinks;
  // The scale of ALiBi's slopes, which add to a score in proportion to the distance of its key; 0:
  // none do.
  float alibi_scale = 0.0F;
  Linear output;
  std::optional<RelativeBias> relative_bias;
  bool causal = true;  // a query sees the keys up to its own; otherwise all of its document
  // Keys and values are made of what the encoder gives; otherwise of the block's input.
  bool reads_encoder = false;
  // What the encoder gives goes through this linear before keys and values: it belongs to this
  // block alone, and its module is a whole name. Where queries are rotated, so are these keys, by
  // the encoder's positions.
  std::optional<Linear> encoder_projection;
  bool rotated = true;        // by the stack's table
  bool local_rotary = false;  // by its second table
  std::optional<Prompt> prompt;
};

// down(activation(gate(x)) * up(x)).
struct GatedMlp {
  Projections gate_up;
  Activation activation = Activation::silu;
  Linear down;
};

// down(activation(up(x))).
struct Mlp {
  Linear up;
  Activation activation = Activation::gelu;
  Linear down;
};

// How files hold the matrices of experts, which in memory are one tensor for gate and up of all
// experts and one for down (models/stored/expert_names.h).
enum class ExpertFiles : uint8_t {
  // A linear of each expert is a tensor (out, in): "MODULE.3.gate_proj.weight".
  each,
  // So are those of all experts together, (experts, in, out): "MODULE.GATE_UP", where gate and up
  // take turns in the columns, and "MODULE.DOWN".
  together,
};

// (u + 1) g sigmoid(alpha g), of a gate g that is at most `limit` and an up u within it.
struct ClampedGate {
  float limit = 0;
  float alpha = 0;
};

// A mixture of experts: a router gives each token to `chosen` of `experts` gated mlps, and their
// outputs are added, weighted by the router's probabilities, which are divided by the sum of those
// chosen where `normalize` says so: that is the softmax over the chosen.
struct ExpertsBlock {
  Linear router;  // (experts, hidden)
  int64_t experts = 0;
  int64_t chosen = 0;
  bool normalize = true;
  std::string module;          // "mlp.experts"
  std::string gate, up, down;  // of files that hold experts together, `gate` is gate and up
  int64_t inner = 0;           // columns of what gate and up give
  ExpertFiles files = ExpertFiles::each;
  // Whether the linears have biases, (experts, out) each: "MODULE.DOWN_bias". Only where files hold
  // experts together are there biases, and a clamped gate; elsewhere it is silu(gate) * up.
  bool bias = false;
  ClampedGate clamped_gate{};
};

using Block = std::variant<AttentionBlock, GatedMlp, Mlp, ExpertsBlock>;

struct Branch {
  std::optional<Norm> norm_before;
  Block block;
  std::optional<Norm> norm_after;
};

struct Layer {
  std::vector<Branch> branches;
  // All branches read the layer's input, x + a(x) + b(x); otherwise each reads what the one before
  // it has added to. Branches side by side may name one norm before their blocks, which is there
  // once.
  bool parallel = false;

  // The norm before the branch with this number is that of the branch before it.
  bool shares_norm(size_t branch) const {
    if (!parallel || branch == 0) return false;
    const auto& norm = branches[branch].norm_before;
    const auto& before = branches[branch - 1].norm_before;
    return norm && before && norm->module == before->module;
  }
};

// What stands before a decoder's layers and reads a stream of tokens of its own. Its last norm
// gives what attention that `reads_encoder` reads.
struct Encoder {
  int64_t hidden_size = 0;
  std::string embedding;  // the module of a table (vocab_size, hidden_size); empty: the stack's
  std::string prefix;     // of the modules of a layer, as the stack's
  std::vector<Layer> layers;
  Norm final_norm;
};

struct Stack {
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;
  std::string embedding;  // the module of the table (vocab_size, hidden_size)
  double embedding_scale =
      1.0;  // of its rows, rounded to the type of computation; not of a tied head
  // The module of a table (position_rows, hidden_size) whose rows are added by position; or empty.
  std::string positions;
  int64_t position_rows = 0;
  std::optional<Norm> embedding_norm;  // of what enters the first layer
  std::optional<Encoder> encoder;
  std::string prefix;  // of the modules of a layer: "model.layers", a number follows
  // What files may leave out at the front of all modules but the head: "transformer.".
  std::string optional_prefix;
  std::vector<Layer> layers;
  Norm final_norm;
  double head_scale = 1.0;  // of what the head reads
  std::string head;         // the module that gives logits
  bool tied_head = false;   // the head's weight is the embedding's table
  // The head is a tensor of its own, which begins with the embedding's values: files hold no other.
  bool head_from_embedding = false;
  bool head_bias = false;  // logits have a bias, which is the head's own
  // Adapter v2: what each linear and the head give has a learned bias and then a learned gain, and
  // norms train (models/forward/prompt_names.h has their names).
  bool adjusts_linears = false;
  float logit_softcap = 0.0F;  // as that of scores
  Rotary rotary;
  std::optional<Rotary> local_rotary;  // a second table, for blocks that say so
  // Tensors of a layer that files may hold besides its weights: "attention.masked_bias".
  std::vector<std::string> ignored;
  // Other names that files may give the embedding's table.
  std::vector<std::string> embedding_copies;

  // Layers are numbered in the order in which they work, the encoder's first.
  int64_t encoder_layers() const {
    return encoder ? static_cast<int64_t>(encoder->layers.size()) : 0;
  }
  int64_t layer_count() const { return encoder_layers() + static_cast<int64_t>(layers.size()); }
  const Layer& layer(int64_t index) const {
    const int64_t first = encoder_layers();
    return index < first ? encoder->layers[static_cast<size_t>(index)]
                         : layers[static_cast<size_t>(index - first)];
  }
  // "model.layers.3".
  std::string layer_name(int64_t index) const {
    const int64_t first = encoder_layers();
    return index < first ? encoder->prefix + "." + std::to_string(index)
                         : prefix + "." + std::to_string(index - first);
  }
};

// "self_attn.q_proj.weight", and the name of a linear's bias.
inline std::string weight_name(const std::string& module) { return module + ".weight"; }
inline std::string bias_name(const std::string& module) { return module + ".bias"; }

}  // namespace snug::models
