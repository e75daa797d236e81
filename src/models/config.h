// The shape of a model: what config.json says, in one struct that every family fills.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::models {

enum class RopeScaling : uint8_t {
  none,
  linear,    // every frequency divided by `factor` (Code Llama's and Llama 2's long forms)
  llama3,    // low frequencies divided, high ones kept, smooth in between (Llama 3.1, 3.2)
  longrope,  // each frequency divided by a factor of its own (Phi-3's 128k form)
};

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position = 8192;
  // longrope: head_dim / 2 divisors each. The long ones hold for a job whose sequences may be
  // longer than original_max_position, the short ones for every other.
  std::vector<double> short_factors;
  std::vector<double> long_factors;
  double attention_factor = 1.0;  // of the rotary table: scores grow by its square

  bool uses_long_factors(int64_t sequence_tokens) const {
    return scaling == RopeScaling::longrope && sequence_tokens > original_max_position;
  }
};

// How a folder stores the linears of its layers when it does so in 4 bits (docs/nf4.md).
struct StoredNf4 {
  bool double_quant = false;
  std::vector<std::string> kept;  // weights of linears that lie there in 16 or 32 bits
};

struct ModelConfig {
  std::string model_type;  // Hugging Face's: "llama", "mistral", ...
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  int64_t max_position = 0;
  float norm_epsilon = 1e-6F;
  RopeConfig rope;
  bool qkv_bias = false;
  bool output_bias = false;  // of o_proj
  bool mlp_bias = false;
  bool qk_norm = false;  // an RMS norm of each query and key head, before rotation
  // One tensor for q, k and v (qkv_proj) and one for gate and up (gate_up_proj).
  bool fused_projections = false;
  // Of each layer: a query sees this many keys, itself included; 0: all before it. Empty: all 0.
  std::vector<int64_t> windows;
  bool tied_embeddings = false;
  float initializer_range = 0.02F;
  std::optional<StoredNf4> stored;  // nothing: 16 or 32 bits
  int64_t file_width = 2;  // bytes of a weight in its files that is not stored so, as it says

  int64_t window_of(int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<size_t>(layer)];
  }
};

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
