// The building blocks of models: the types with which each family's file describes its network.
//
//   stack    an encoder, if there is one; embedding, layers, final norm, head
//   encoder  layers that read all of their input, and a final norm
//   layer    branches, one after another or side by side, each of which adds to the residual stream
//   branch   x + scale * norm_after(block(norm_before(x))), where either norm may be absent
//   block    attention, a gated delta net, a gated short convolution, an mlp that is gated or not,
//            a mixture of such mlps,
//            or a layer's input from a second embedding
//
// Every module that has weights is named as in Hugging Face's folders. Modules of a layer are named
// within it: "self_attn.q_proj" is the tensor "model.layers.0.self_attn.q_proj.weight" in layer 0.
// models/weights.h lists the tensors of a stack, and models/forward/forward.h makes its forward
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
  rms,  // x / sqrt(mean(x^2) + epsilon) * w
  // The same as rms, times 1 + w, where files hold w.
  rms_one_plus_w,
  // (x - mean(x)) / sqrt(variance(x) + epsilon) * w, plus a bias if there is one.
  layer,
  // x / sqrt(mean(x^2) + epsilon), without a weight. The module names nothing.
  rms_without_weight,
};

// A norm over the last `width` elements.
struct Norm {
  std::string module;
  int64_t width = 0;
  float epsilon = 0;
  NormForm form = NormForm::rms;
  bool bias = false;
  // Of queries or keys: each of these heads has weights of its own, which files hold in tensors of
  // their own ("module.3.weight" of head 3); layer norms without a bias. 0: heads share them.
  int64_t heads = 0;
};

// gelu is the exact form and gelu_tanh its approximation; relu and xielu are only for an mlp
// without a gate.
enum class Activation : uint8_t { silu, gelu, gelu_tanh, relu, xielu };

// y = x W^T, plus a bias if there is one. W is stored (out, in), or (in, out) where files hold its
// transpose. In 4 bits it is always (out, in), as in bitsandbytes.
struct Linear {
  std::string module;
  int64_t out = 0;
  int64_t in = 0;
  bool bias = false;
  bool transposed = false;
  // Stays in 16 bits even where other linears are stored in 4 bits, as in bitsandbytes.
  bool in_16_bits = false;
};

// The order of rows within fused projections.
enum class RowOrder : uint8_t {
  by_part,  // all rows of the first part, then all of the second, and so on
  // For queries, keys and values: the queries that share a key head, then that key head, then its
  // value head; then the same for the next key head.
  by_group,
  // A number of blocks, each with its share of the heads' queries, then of values, then of keys.
  by_block,
};

// Linears with the same input. If `fused` is empty, each has tensors of its own. Otherwise the
// module of that name holds the rows of all of them, in `order`, and is treated as one linear by
// everything else: the forward pass, LoRA and quantisation.
struct Projections {
  std::vector<Linear> parts;
  std::string fused;
  RowOrder order = RowOrder::by_part;
  int64_t blocks = 1;  // the number of blocks, for by_block
  // The first part (the queries) has tensors of its own and is not fused with the others.
  bool queries_apart = false;

  bool is_fused() const { return !fused.empty(); }
  // The linear that holds the rows of all fused parts: all parts, or all but the queries if these
  // are apart.
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
  bool interleaved = false;  // which elements form a pair: see program/kinds/attention/rope.h
};

// A table (buckets, heads) of numbers that are added to attention scores by the distance of the
// key, as in T5 (bucket_of in program/kinds/attention/attention.h). `module` is its whole name:
// layers that name the same table share it, and it belongs to no layer.
struct RelativeBias {
  std::string module;
  int64_t buckets = 0;
  int64_t max_distance = 0;
};

// Learned vectors from which a block of attention computes additional keys and values that belong
// to no token (LLaMA-Adapter, Zhang et al. 2023). They are computed by the block's own projections,
// and are neither normed nor rotated. Each head attends to them with a separate softmax; the result
// is multiplied by a gate and added to the head's output for the tokens, before the output
// projection.
struct Prompt {
  int64_t tokens = 0;
  bool gate_of_heads = false;  // one gate per head; otherwise one for all heads
};

// Attention with `heads` query heads; each key and value head is shared by heads / kv_heads of
// them.
struct AttentionBlock {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  Projections query_key_value;
  // Norms of queries and keys. A norm whose width is head_dim applies to each head separately; any
  // other width means all heads of a token at once. Fused projections have no such norms.
  std::optional<Norm> query_norm;
  std::optional<Norm> key_norm;
  std::optional<Norm> value_norm;  // of each head
  // Values are what the keys' projection gives, before norm and rotation. Projections are then two.
  bool keys_as_values = false;
  // The layer, of the same window, whose keys and values this block reads instead of its own. There
  // is then one projection, and the block keeps nothing in a cache.
  std::optional<int64_t> keys_of_layer;
  bool normed_after_rotation = false;  // otherwise these norms come before the rotation
  float scale = 1.0F;                  // factor of the scores
  float softcap = 0.0F;                // c: a scaled score s becomes c tanh(s / c); 0: no cap
  int64_t window = 0;  // a query sees this many keys, its own included; 0: all keys up to its own
  // The name in files of the tensor (heads) of sinks: logits that take part in each query's softmax
  // without a value. Empty: there are no sinks.
  std::string sinks;
  // The factor of ALiBi's slopes, by which a score changes in proportion to the distance of its
  // key; 0: no ALiBi.
  float alibi_scale = 0.0F;
  Linear output;
  std::optional<RelativeBias> relative_bias;
  bool causal = true;  // a query sees the keys up to its own; otherwise all keys of its document
  // Keys and values are computed from the encoder's output; otherwise from the block's input.
  bool reads_encoder = false;
  // A linear that is applied to the encoder's output before keys and values are computed. It
  // belongs to this block alone, and its module is a whole name. If queries are rotated, so are
  // these keys, by the encoder's positions.
  std::optional<Linear> encoder_projection;
  bool rotated = true;        // by the stack's rotary table
  bool local_rotary = false;  // by the stack's second rotary table
  // The queries' projection has a gate after each head's query, whose sigmoid multiplies what the
  // head gives before the output projection.
  bool output_gate = false;
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
  // The module of xielu's learned numbers and constants (program/kinds/elementwise/xielu.h):
  // "mlp.act_fn". Empty for other activations.
  std::string learned{};
};

// How files store the matrices of experts. In memory there is one tensor for gate and up of all
// experts, and one for down (models/stored/expert_names.h).
enum class ExpertFiles : uint8_t {
  // Each linear of each expert is a tensor (out, in): "MODULE.3.gate_proj.weight".
  each,
  // One tensor holds a linear of all experts, (experts, in, out): "MODULE.GATE_UP", whose columns
  // alternate between gate and up, and "MODULE.DOWN".
  together,
  // One tensor holds a linear of all experts, (experts, out, in): "MODULE.GATE_UP", whose rows are
  // an expert's gate and then its up, and "MODULE.DOWN".
  stacked,
};

// (u + 1) g sigmoid(alpha g), with the gate g clamped to at most `limit`, and u to [-limit, limit].
struct ClampedGate {
  float limit = 0;
  float alpha = 0;
};

// What a router's logits are made into (program/kinds/expert/route.h).
enum class RouterScore : uint8_t {
  softmax,
  sigmoid,
};

// An mlp that all tokens go through, next to the experts that are chosen for each. With a gate, a
// linear of one output, what it gives a token is multiplied by sigmoid(gate(x)). It may have norms
// of its own: of what it reads, and of what it gives.
struct SharedExpert {
  GatedMlp mlp;
  std::optional<Linear> gate{};
  std::optional<Norm> norm_before{};
  std::optional<Norm> norm_after{};
};

// What a router reads instead of the block's input: scale * rms_norm(x), whose weight has the whole
// name of a tensor in the layer ("router.scale").
struct RouterInput {
  std::string weight;
  float epsilon = 0;
  float scale = 1.0F;
};

// A mixture of experts: a router assigns each token to `chosen` of `experts` gated mlps, and adds
// their outputs weighted by the router's probabilities. With `normalize`, these are divided by
// their sum over the chosen experts, which equals a softmax over the chosen.
struct ExpertsBlock {
  Linear router;  // (experts, hidden)
  int64_t experts = 0;
  int64_t chosen = 0;
  bool normalize = true;
  std::string module;  // "mlp.experts"
  // Where files hold the experts together, `gate` is gate and up.
  std::string gate, up, down;
  int64_t inner = 0;  // columns of the outputs of gate and up
  ExpertFiles files = ExpertFiles::each;
  // Whether the linears have biases (experts, out): "MODULE.DOWN_bias". Biases and a clamped gate
  // exist only where files hold experts together; otherwise it is activation(gate) * up.
  bool bias = false;
  ClampedGate clamped_gate{};
  RouterScore score = RouterScore::softmax;
  // A tensor (experts) in fp32 that is added to scores while experts are chosen; it does not train.
  // Empty: there is none.
  std::string correction{};
  // Experts form `groups` groups, of which a token reaches `chosen_groups`.
  int64_t groups = 1;
  int64_t chosen_groups = 1;
  float scale = 1.0F;  // factor of the experts' weights
  std::optional<SharedExpert> shared{};
  Activation activation = Activation::silu;  // of experts without a clamped gate; or gelu_tanh
  std::optional<RouterInput> router_input{};
  // Norms of what the chosen experts read, and of the sum of what they give.
  std::optional<Norm> norm_before{};
  std::optional<Norm> norm_after{};
  // A tensor (experts) whose elements multiply the weights of their experts. Empty: there is none.
  std::string expert_scales{};
};

// A gated delta net (Yang et al. 2024), which stands in the place of attention. Queries, keys and
// values of its heads pass a short convolution along the tokens and then the gated delta rule
// (program/kinds/recurrence/gated_delta_rule.h). What a head gives is normed and multiplied by
// silu(gate), before the output projection.
struct GatedDeltaBlock {
  int64_t key_heads = 0;
  int64_t value_heads = 0;  // a multiple of key_heads
  int64_t key_dim = 0;      // elements of a head
  int64_t value_dim = 0;
  // The linears are two: `query_key_value` has the gate's rows too, and `beta` those of `decay`.
  // Rows are grouped by key head: its query, its key, its values and the gate of these; and how
  // much of its values is written, and their decays.
  bool is_grouped = false;
  Linear query_key_value;   // all queries, then all keys, then all values
  Linear gate;              // (value heads * value_dim, hidden)
  Linear beta;              // (value heads, hidden): how much of a value is written, before sigmoid
  Linear decay;             // (value heads, hidden): of the state, before softplus
  std::string convolution;  // module of a weight (convolved_columns(), 1, convolution_width)
  int64_t convolution_width = 0;
  std::string decay_rate;  // name of a tensor (value heads): the logarithm of the factor of decays
  std::string decay_bias;  // name of a tensor (value heads), which is added to `decay`
  Norm norm;               // of what a head gives
  Linear output;

  // All queries, all keys and all values.
  int64_t convolved_columns() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
};

// down(activation(gate(x)) * input), where `input` is what the stack's LayerInputs give this layer.
struct LayerInputBlock {
  Linear gate;  // (width of a layer's input, hidden)
  Activation activation = Activation::gelu_tanh;
  Linear down;
};

// A gated short convolution (LFM2), which stands in the place of attention: output(c *
// convolution(b * x)), where b, c and x are the parts of what `input` gives and the convolution has
// a filter of its own for each column.
struct ShortConvolutionBlock {
  Linear input;             // (3 * hidden, hidden): all of b, then all of c, then all of x
  std::string convolution;  // module of a weight (hidden, 1, convolution_width)
  int64_t convolution_width = 0;
  Linear output;
};

using Block = std::variant<AttentionBlock, GatedMlp, Mlp, ExpertsBlock, GatedDeltaBlock,
                           ShortConvolutionBlock, LayerInputBlock>;

// Whether the block stands in attention's place and keeps a recurrent state of each sequence.
inline bool keeps_state(const Block& block) {
  return std::holds_alternative<GatedDeltaBlock>(block) ||
         std::holds_alternative<ShortConvolutionBlock>(block);
}

struct Branch {
  std::optional<Norm> norm_before;
  Block block;
  std::optional<Norm> norm_after;
  float scale = 1.0F;  // factor of what the branch adds to the residual stream
};

struct Layer {
  std::vector<Branch> branches;
  // If true, all branches read the layer's input: x + a(x) + b(x). Otherwise each branch reads the
  // sum that the branch before it made. Parallel branches may name the same norm before their
  // blocks, which then exists once.
  bool parallel = false;
  // The name of a tensor (1), a constant by which what leaves the layer is multiplied. Empty: there
  // is none.
  std::string factor{};

  // Whether the branch with this number shares the norm of the branch before it.
  bool shares_norm(size_t branch) const {
    if (!parallel || branch == 0) return false;
    const auto& norm = branches[branch].norm_before;
    const auto& before = branches[branch - 1].norm_before;
    return norm && before && norm->module == before->module;
  }
};

// An input of each layer besides the residual stream. For each token it is a row of a second table
// of embeddings, and a projection of the first embedding's row, scaled and normed:
// (norm(scale * projection(embedded)) + table_scale * table[token]) * sum_scale. A layer reads its
// `width` columns.
struct LayerInputs {
  std::string table;  // module of (vocab_size, layers * width)
  int64_t vocab_size = 0;
  int64_t width = 0;
  Linear projection;  // (layers * width, hidden)
  Norm norm;          // of each layer's columns
  float table_scale = 1.0F;
  float projection_scale = 1.0F;
  float sum_scale = 1.0F;
};

// The layers before a decoder's, which read a stream of tokens of their own. The output of its
// final norm is what attention with `reads_encoder` reads.
struct Encoder {
  int64_t hidden_size = 0;
  std::string embedding;  // module of a table (vocab_size, hidden_size); empty: the stack's
  std::string prefix;     // of the modules of a layer, as in Stack
  std::vector<Layer> layers;
  Norm final_norm;
};

struct Stack {
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;
  std::string embedding;  // module of the table (vocab_size, hidden_size)
  double embedding_scale =
      // Factor of the embedding's rows, rounded to the compute type; a tied head is not scaled.
      1.0;
  // The module of a table (position_rows, hidden_size) whose rows are added by position; empty:
  // none.
  std::string positions;
  int64_t position_rows = 0;
  std::optional<Norm> embedding_norm;  // applied to the input of the first layer
  std::optional<LayerInputs> layer_inputs;
  std::optional<Encoder> encoder;
  std::string prefix;  // of the modules of a layer: "model.layers", followed by a number
  // A prefix that files may omit from the names of all modules except the head: "transformer.".
  std::string optional_prefix;
  std::vector<Layer> layers;
  Norm final_norm;
  double head_scale = 1.0;  // factor of the head's input
  std::string head;         // module that computes the logits
  bool tied_head = false;   // the head's weight is the embedding's table
  // The head is a tensor of its own that begins with the embedding's values, since files hold only
  // the embedding.
  bool head_from_embedding = false;
  bool head_bias = false;  // logits have a bias of their own
  // Adapter v2: the outputs of every linear and of the head have a learned bias and then a learned
  // scale, and norms train (models/forward/prompt_names.h has the names).
  bool adjusts_linears = false;
  float logit_softcap = 0.0F;  // cap of the logits, as AttentionBlock::softcap
  Rotary rotary;
  std::optional<Rotary> local_rotary;  // a second table, for blocks with local_rotary
  // The module in which files hold the text model, next to other parts: "model.language_model". The
  // names here are without it (formats/adapter/adapter_names.h). Empty: the files hold a model of
  // text alone.
  std::string text_module;
  // Files may hold layers after the last one, which predict tokens after the next one and are
  // skipped.
  bool further_layers = false;
  // The module of further layers that files may hold, which predict tokens after the next one:
  // "mtp". They are skipped, and written back as they are. Empty: there are none.
  std::string further_module;
  // Tensors of a layer that files may hold although they are not weights: "attention.masked_bias".
  std::vector<std::string> ignored;
  // Other names under which files may hold the embedding's table.
  std::vector<std::string> embedding_copies;

  // Whether layers keep a recurrent state of each sequence, next to keys and values.
  bool has_states() const {
    for (const Layer& layer : layers)
      for (const Branch& branch : layer.branches)
        if (keeps_state(branch.block)) return true;
    return false;
  }

  // Layers are numbered in the order in which they run, the encoder's first.
  int64_t encoder_layers() const {
    return encoder ? static_cast<int64_t>(encoder->layers.size()) : 0;
  }
  int64_t layer_count() const { return encoder_layers() + static_cast<int64_t>(layers.size()); }
  const Layer& layer(int64_t index) const {
    const int64_t first = encoder_layers();
    return index < first ? encoder->layers[static_cast<size_t>(index)]
                         : layers[static_cast<size_t>(index - first)];
  }
  // The name of a layer, such as "model.layers.3".
  std::string layer_name(int64_t index) const {
    const int64_t first = encoder_layers();
    return index < first ? encoder->prefix + "." + std::to_string(index)
                         : prefix + "." + std::to_string(index - first);
  }
};

// Names of a linear's tensors: "self_attn.q_proj.weight" and "self_attn.q_proj.bias".
inline std::string weight_name(const std::string& module) { return module + ".weight"; }
inline std::string bias_name(const std::string& module) { return module + ".bias"; }

}  // namespace snug::models
