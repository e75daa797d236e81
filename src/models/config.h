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
  linear,  // every frequency divided by `factor` (Code Llama's and Llama 2's long forms)
  llama3,  // low frequencies divided, high ones kept, smooth in between (Llama 3.1, 3.2)
};

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position = 8192;
};

struct ModelConfig {
  std::string model_type;  // Hugging Face's: "llama"
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
  bool attention_bias = false;
  bool mlp_bias = false;
  bool tied_embeddings = false;
  float initializer_range = 0.02F;
};

// Reads a config.json's text; `file` is named in errors. Throws UserError for an unknown
// model_type, a missing or impossible value, and everything in the file that would change the
// result and is not built.
ModelConfig parse_config(std::string_view text, const std::string& file);

// A built-in shape by its name ("llama-3.1-8b"), or nothing.
std::optional<ModelConfig> preset(std::string_view name);
// Names of all presets, sorted.
std::vector<std::string> preset_names();

// The model a user named: a preset, or a folder with a config.json. Throws UserError naming the
// nearest preset when it is neither.
struct ModelSource {
  ModelConfig config;
  std::filesystem::path folder;  // empty for a preset: no weights, random ones on request
};
ModelSource find_model(const std::string& name_or_folder);

}  // namespace snug::models
