// The shape of a model: the content of config.json in one struct that every family fills. Each
// family makes its network from it (models/families/families.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config/rope_config.h"

namespace snug::models {

// How a folder stores the linears of layers if it stores them in 4 bits (docs/nf4.md).
struct StoredNf4 {
  bool double_quant = false;
  std::vector<std::string> kept{};  // weights of linears stored in 16 or 32 bits
  std::string head{};               // name of the head's weight if it is stored in 4 bits
};

// How the model represents the order of tokens.
enum class Positions : uint8_t {
  rotary,  // queries and keys are rotated
  // Rows of a table are added to the embeddings, so the table's size limits the positions.
  learned,
  // Scores fall with the distance of the key.
  alibi,
  // A table gives a bias of the scores for each distance of the key.
  relative,
};

// An encoder whose layers have other sizes than the decoder's.
struct EncoderShape {
  int64_t hidden_size = 0;
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  double partial_rotary_factor = 1.0;
};

struct ModelConfig {
  std::string model_type;  // as in Hugging Face's config.json: "llama", "mistral", ...
  int64_t hidden_size = 0;
  int64_t num_layers = 0;               // of the encoder and the decoder together
  int64_t encoder_layers = 0;           // of these, the encoder's, which come first; 0: no encoder
  std::optional<EncoderShape> encoder;  // nothing: an encoder has the sizes below
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  // For families whose layers without a window have other heads: their elements, and how many heads
  // keys and values have; 0: as in layers with one.
  int64_t full_head_dim = 0;
  int64_t full_kv_heads = 0;
  // For families whose layers without a window may have no projection of values: these are then
  // what the keys' projection gives.
  bool keys_as_values = false;
  // For families whose last layers may read the keys and values of an earlier layer: how many do,
  // and whether their mlps are twice as wide.
  int64_t sharing_layers = 0;
  bool wide_sharing_mlps = false;
  // For families whose layers may have an input of their own, which comes from a second embedding:
  // its elements in each layer (0: there is none), and the rows of that embedding's table.
  int64_t layer_input_size = 0;
  int64_t layer_input_vocab = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  int64_t max_position = 0;
  float norm_epsilon = 1e-6F;
  Positions positions = Positions::rotary;
  RopeConfig rope;
  std::optional<RopeConfig> local_rope;  // of layers with a window, if they differ
  double partial_rotary_factor = 1.0;    // rotated part of a head's elements, from the first on
  std::vector<int64_t>
      unrotated_layers;                // layers whose queries and keys are not rotated, ascending
  bool attention_bias = false;         // as in config.json
  bool attention_output_bias = false;  // for families that have it apart from the former
  bool mlp_bias = false;
  // The window of each layer: a query sees this many keys, its own included; 0: all keys up to its
  // own. Empty: 0 in all layers.
  std::vector<int64_t> windows;
  // The blocks of a layer run in parallel. For families that have both forms.
  bool parallel_residual = false;
  // The number of norms that parallel blocks read, for families that have one or two.
  int64_t parallel_norms = 1;
  // gelu in its tanh form, for families that have both forms.
  bool gelu_tanh = false;
  // Mlps have a gate, for families that have both forms.
  bool gated_mlp = true;
  // The head's input is scaled, for families that have both forms.
  bool scaled_head = false;
  int64_t relative_buckets = 0;   // rows of the table of relative positions
  int64_t relative_distance = 0;  // the distance from which on the last row applies
  // Only with an encoder: the token that begins every document of the decoder, and the token that
  // the decoder reads in place of a label without loss.
  int64_t decoder_start_id = 0;
  int64_t padding_id = 0;
  bool repeats_prompt = false;  // the decoder reads the prompt before its answer, too
  // For families some of whose layers have a recurrent state in place of attention: those layers,
  // ascending; of gated delta nets, heads of the state's keys and values, and their elements;
  // tokens that the causal convolution sees, its own included.
  std::vector<int64_t> recurrent_layers;
  int64_t state_key_heads = 0;
  int64_t state_value_heads = 0;
  int64_t state_key_dim = 0;
  int64_t state_value_dim = 0;
  int64_t convolution_width = 0;
  // For families with mixtures of experts.
  int64_t num_experts = 0;
  int64_t chosen_experts = 0;  // experts per token
  int64_t expert_size = 0;     // intermediate_size of an expert
  // For families whose files hold the matrices of a layer's experts either each in a tensor of its
  // own or all in one: they are in one (models/stored/expert_files.h).
  bool experts_in_one = false;
  bool normalize_experts = true;   // their weights are divided by their sum
  int64_t shared_expert_size = 0;  // intermediate_size of a shared expert; 0: there is none
  int64_t expert_groups = 1;       // n_group and topk_group
  int64_t chosen_groups = 1;
  double expert_scale = 1.0;          // routed_scaling_factor, the factor of experts' weights
  bool query_key_norms = false;       // for families that have both forms
  std::vector<int64_t> dense_layers;  // layers with one mlp instead of experts, ascending
  bool router_loss = false;           // output_router_logits: training adds the balancing loss
  double router_coefficient = 0;      // router_aux_loss_coef, the factor of that loss
  double gate_limit = 0;              // swiglu_limit and swiglu_alpha, for a clamped gate
  double gate_alpha = 0;
  double query_scalar = 0;         // query_pre_attn_scalar
  double attention_scale = 0;      // the factor of attention scores; 0: 1 / sqrt(head_dim)
  double embedding_scale = 1.0;    // the factor of the embedding's rows
  double residual_scale = 1.0;     // the factor of what each block adds to the residual stream
  double logit_scale = 1.0;        // the factor of the logits
  float attention_softcap = 0.0F;  // 0: no cap
  float logit_softcap = 0.0F;
  bool tied_embeddings = false;
  // Where the text model is a part of a model with encoders of images or sound, the module in which
  // it lies (Stack::text_module).
  std::string text_module;
  // Set where an adapter brings tables of its own (plan/spec/adapter_tables.h): whether the head
  // becomes a tensor separate from the embedding, although the model's files hold the embedding
  // only; and the names of weights that are read only from the adapter's files.
  bool head_from_embedding = false;
  std::vector<std::string> from_adapter;
  double dropout = 0;  // the highest rate in config.json; snug applies no dropout of the model
  float initializer_range = 0.02F;
  std::optional<StoredNf4> stored;  // nothing: stored in 16 or 32 bits
  int64_t file_width = 2;           // bytes per element in files, except NF4, by config.json
  // Bytes per element of the weights whose files have another width, by name.
  std::map<std::string, int64_t, std::less<>> other_widths;

  bool has_encoder() const { return encoder_layers > 0; }
  // Whether layers differ from each other in the sizes of what they compute and keep.
  bool has_unlike_layers() const {
    return !recurrent_layers.empty() || full_head_dim > 0 || sharing_layers > 0;
  }
  int64_t width_in_files(std::string_view weight) const {
    const auto other = other_widths.find(weight);
    return other == other_widths.end() ? file_width : other->second;
  }
  // The factor of the loss that balances experts in training; 0: there is no such loss.
  double router_loss_factor() const { return router_loss ? router_coefficient : 0.0; }
  int64_t rotary_width() const {
    if (positions != Positions::rotary) return 0;
    return rotated_elements(head_dim, partial_rotary_factor);
  }
  int64_t window_of(int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<size_t>(layer)];
  }
};

// The model with this many layers, in the encoder and in the decoder each.
ModelConfig with_layers(ModelConfig config, int64_t layers);

// Parses the text of a config.json; `file` is named in errors. Throws UserError for an unknown
// model_type, a missing or impossible value, and any setting that would change the result and is
// not built.
ModelConfig parse_config(std::string_view text, const std::string& file);

// The built-in shape with this name ("llama-3.1-8b"), or nothing.
std::optional<ModelConfig> preset(std::string_view name);
// Names of all presets, sorted.
std::vector<std::string> preset_names();

// The folder that a user named by its path, or by "org/name" or "org/name@revision" on the Hugging
// Face hub, which must be in the local hub cache. Throws UserError with the command that downloads
// it.
std::filesystem::path find_model_folder(const std::string& name_or_folder);

// Opens the model that a user named: a preset, or a folder with a config.json. If the folder's
// files are quantised, config.json must say so. Throws UserError that names a similar preset when
// it is neither.
struct ModelSource {
  ModelConfig config;
  std::filesystem::path folder;  // empty for a preset, which has no weight files
};
ModelSource find_model(const std::string& name_or_folder);

}  // namespace snug::models
