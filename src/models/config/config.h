// The shape of a model: what config.json says, in one struct that every family fills. Which network
// that makes is for the family to say (models/families/families.h).
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

// How a folder stores the linears of its layers when it does so in 4 bits (docs/nf4.md).
struct StoredNf4 {
  bool double_quant = false;
  std::vector<std::string> kept{};  // weights of linears that lie there in 16 or 32 bits
  std::string head{};               // the head's weight where it lies there in 4 bits
};

// How a model knows the order of tokens.
enum class Positions : uint8_t {
  rotary,    // queries and keys are rotated
  learned,   // a table's rows are added to the embeddings, so there are no positions beyond it
  alibi,     // scores fall with the distance of the key
  relative,  // scores have a bias by the distance of the key, which a table holds
};

// An encoder whose layers are of another size than the decoder's.
struct EncoderShape {
  int64_t hidden_size = 0;
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  double partial_rotary_factor = 1.0;
};

struct ModelConfig {
  std::string model_type;  // Hugging Face's: "llama", "mistral", ...
  int64_t hidden_size = 0;
  int64_t num_layers = 0;      // of all stacks
  int64_t encoder_layers = 0;  // of these, the encoder's, which come first; 0: there is no encoder
  std::optional<EncoderShape> encoder;  // none: an encoder is of the sizes below
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  int64_t max_position = 0;
  float norm_epsilon = 1e-6F;
  Positions positions = Positions::rotary;
  RopeConfig rope;
  std::optional<RopeConfig> local_rope;  // of layers with a window, where theirs differs
  double partial_rotary_factor = 1.0;  // of a head's elements, from the first on, that are rotated
  bool attention_bias = false;         // attention_bias and mlp_bias: as config.json says
  bool mlp_bias = false;
  // The windows of layers: a query sees this many keys, itself included; 0: all before it. Empty:
  // all 0.
  std::vector<int64_t> windows;
  bool parallel_residual = false;  // blocks of a layer stand side by side, where a family has both
  int64_t parallel_norms = 1;      // and read so many norms, where a family has one or two
  bool gelu_tanh = false;          // gelu in its tanh form, likewise
  bool gated_mlp = true;           // an mlp has a gate, where a family has both
  bool scaled_head = false;        // what the head reads is scaled, likewise
  int64_t relative_buckets = 0;    // of the table of relative positions
  int64_t relative_distance = 0;   // that its last row holds, with all beyond
  // These come with an encoder: the token that begins every document of a decoder, and the one that
  // a decoder reads in place of a label without loss.
  int64_t decoder_start_id = 0;
  int64_t padding_id = 0;
  bool repeats_prompt = false;  // the decoder reads the prompt, too, before its answer
  // Mixtures of experts, where a family has them.
  int64_t num_experts = 0;
  int64_t chosen_experts = 0;         // that each token is given to
  int64_t expert_size = 0;            // intermediate_size of an expert
  bool normalize_experts = true;      // their weights sum to one
  std::vector<int64_t> dense_layers;  // that have one mlp instead, ascending
  bool router_loss = false;           // output_router_logits: training balances them
  double router_coefficient = 0;      // router_aux_loss_coef, of the loss that does
  double gate_limit = 0;              // swiglu_limit and swiglu_alpha, of a clamped gate
  double gate_alpha = 0;
  double query_scalar = 0;         // query_pre_attn_scalar
  float attention_softcap = 0.0F;  // 0: no cap
  float logit_softcap = 0.0F;
  bool tied_embeddings = false;
  // Where an adapter has tables of its own (plan/spec/adapter_tables.h): the head is a tensor apart
  // from the embedding, and its values in the model's files are the embedding's; and the weights
  // that are read from the adapter's files alone.
  bool head_from_embedding = false;
  std::vector<std::string> from_adapter;
  double dropout = 0;  // the most that config.json asks for in training, which snug does not do
  float initializer_range = 0.02F;
  std::optional<StoredNf4> stored;  // nothing: 16 or 32 bits
  int64_t file_width = 2;  // bytes of a weight in its files that is not stored so, as it says
  // The widths of weights whose files hold elements of another width, by name.
  std::map<std::string, int64_t, std::less<>> other_widths;

  bool has_encoder() const { return encoder_layers > 0; }
  int64_t width_in_files(std::string_view weight) const {
    const auto other = other_widths.find(weight);
    return other == other_widths.end() ? file_width : other->second;
  }
  // The coefficient of the loss that balances experts in training; 0: there is none.
  double router_loss_factor() const { return router_loss ? router_coefficient : 0.0; }
  int64_t rotary_width() const {
    if (positions != Positions::rotary) return 0;
    return rotated_elements(head_dim, partial_rotary_factor);
  }
  int64_t window_of(int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<size_t>(layer)];
  }
};

// The model with so many layers, of an encoder and of a decoder each.
ModelConfig with_layers(ModelConfig config, int64_t layers);

// Reads a config.json's text; `file` is named in errors. Throws UserError for an unknown
// model_type, a missing or impossible value, and everything in the file that would change the
// result and is not built.
ModelConfig parse_config(std::string_view text, const std::string& file);

// A built-in shape by its name ("llama-3.1-8b"), or nothing.
std::optional<ModelConfig> preset(std::string_view name);
// Names of all presets, sorted.
std::vector<std::string> preset_names();

// The folder a user named, by its path or as "org/name" or "org/name@revision" of the Hugging Face
// hub, whose local cache then has it. Throws UserError with the command that fetches it.
std::filesystem::path find_model_folder(const std::string& name_or_folder);

// The model a user named: a preset, or a folder with a config.json, which must say of quantised
// files that they are. Throws UserError naming a near preset when it is neither.
struct ModelSource {
  ModelConfig config;
  std::filesystem::path folder;  // empty for a preset: no weights, random ones on request
};
ModelSource find_model(const std::string& name_or_folder);

}  // namespace snug::models
