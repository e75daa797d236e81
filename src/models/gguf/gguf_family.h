// How each family of Snug is called in llama.cpp, and in what llama.cpp's families differ from each
// other. Everything else follows from the family's blocks.
#pragma once

#include <span>
#include <string_view>

#include "models/blocks.h"
#include "models/config/config.h"

namespace snug::models {

// The tensors that the logits are computed from.
enum class GgufHead : uint8_t {
  any,   // output.weight, or without it the embedding
  own,   // output.weight: where the head is tied, the embedding is written twice
  tied,  // the embedding alone
};

struct GgufFamily {
  std::string_view model_type;    // in config.json
  std::string_view architecture;  // general.architecture
  GgufHead head = GgufHead::any;
  // Rotary pairs are neighbouring elements of a head, so rows of queries and keys are reordered.
  bool rotary_in_turns = false;
  bool rotates_part = false;  // files may say that only a part of a head is rotated
  bool own_head_dim = false;  // heads may have other sizes than hidden_size / heads
  bool output_bias = false;   // the output projection may have a bias
  std::string_view bias_key = "attention_bias";  // that of config.json which gives it one
  bool mlp_bias = false;                         // projections of a gated mlp may have biases
  bool needs_biases = false;    // biases are read where the model has none: zeros are written
  bool rotary_factors = false;  // a tensor divides the rotary frequencies (llama3)
  // Such a tensor divides those of layers without a window: pairs that do not rotate by so much
  // that they stay where they are (proportional).
  bool factors_of_full_layers = false;
  // Of `period` layers all but the last have the window, unless the file has a list of them; 0: all
  // layers see everything.
  int64_t window_period = 0;
  bool lists_windows = false;  // the file always has that list
  // Of `period` layers the last does not rotate; 0: all layers rotate.
  int64_t unrotated_period = 0;
  bool rotates_windows = false;  // where there are windows, only layers with one rotate
  bool logit_scale = false;      // the file says the factor of the logits
  // The weights of experts are not divided by their sum.
  bool plain_expert_weights = false;
  // The file says how many layers, from the first on, have no experts, how experts are weighed, and
  // what factor their weights have.
  bool says_experts = false;
  // A shared expert has the names of an mlp, and gate and up of the chosen experts are one tensor.
  bool mlp_next_to_experts = false;
  // Names of the norms before the blocks, where these do not share one.
  std::string_view attention_norm = "attn_norm";
  std::string_view mlp_norm = "ffn_norm";
  std::string_view final_norm = "output_norm";
};

std::span<const GgufFamily> gguf_families();
// Throws UserError, naming the families that llama.cpp runs, for one that it does not.
const GgufFamily& gguf_family(std::string_view model_type);

// Throws UserError for a setting of the model that the architecture does not have.
void check_runs_in_llama_cpp(const GgufFamily& family, const ModelConfig& config,
                             const Stack& stack);

// Whether the architecture rotates queries and keys of this layer.
bool rotates_in_llama_cpp(const GgufFamily& family, const ModelConfig& config, int64_t layer);

// The factor of attention scores that llama.cpp applies.
double gguf_score_scale(const GgufFamily& family, const ModelConfig& config);

}  // namespace snug::models
