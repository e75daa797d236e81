#include "models/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace snug::models {
namespace {

using base::JsonObject;

// The double whose decimal form is the shortest that gives this float: 1e-05, not 9.99999975e-06.
double as_written(float value) { return std::stod(fmt::format("{}", value)); }

// Refuses what a file may ask for and no family does.
void refuse_unbuilt(const JsonObject& json, const ModelConfig& config) {
  if (config.num_heads % config.num_kv_heads != 0)
    json.fail("num_key_value_heads", fmt::format("is {}; {} attention heads cannot share that many",
                                                 config.num_kv_heads, config.num_heads));
  if (config.head_dim % 2 != 0)
    json.fail("head_dim",
              fmt::format("is {}; rotary embeddings need an even number", config.head_dim));
  if (const auto activation = json.text_or("hidden_act", "silu"); activation != "silu")
    json.fail("hidden_act", fmt::format("is \"{}\"; this family has only silu", activation));
  for (const char* key : {"attention_dropout", "resid_pdrop", "embd_pdrop"})
    if (json.number_or(key, 0.0) != 0.0)
      json.fail(key, "is not 0; snug drops nothing but LoRA's inputs, so set it to 0");
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"})
    if (json.has(key)) json.fail(key, "is present; mixtures of experts are not built");
}

}  // namespace

ModelConfig parse_shape(const JsonObject& json, const Defaults& defaults) {
  ModelConfig config;
  config.model_type = json.text("model_type");
  config.hidden_size = positive(json, "hidden_size", kMaxHidden);
  config.num_layers = positive(json, "num_hidden_layers", kMaxLayers);
  config.num_heads = positive(json, "num_attention_heads", kMaxHeads);
  // Absent means the class's default, null as many as heads.
  const bool given = json.value().contains("num_key_value_heads");
  const int64_t kv_heads = given || defaults.kv_heads == 0 ? config.num_heads : defaults.kv_heads;
  config.num_kv_heads = positive_or(json, "num_key_value_heads", kv_heads, kMaxHeads);
  const bool divided = !json.has("head_dim") && defaults.head_dim == 0;
  if (divided && config.hidden_size % config.num_heads != 0)
    json.fail("num_attention_heads", fmt::format("is {}, which does not divide hidden_size {}",
                                                 config.num_heads, config.hidden_size));
  const int64_t head_dim = divided ? config.hidden_size / config.num_heads : defaults.head_dim;
  config.head_dim = positive_or(json, "head_dim", head_dim, kMaxHeads);
  config.intermediate_size = positive(json, "intermediate_size", kMaxIntermediate);
  config.vocab_size = positive(json, "vocab_size", kMaxVocabulary);
  config.max_position = positive_or(json, "max_position_embeddings", defaults.max_position);
  config.norm_epsilon = static_cast<float>(json.number_or("rms_norm_eps", defaults.norm_epsilon));
  if (!(config.norm_epsilon >= 0))
    json.fail("rms_norm_eps",
              fmt::format("is {}; expected a number of at least 0", config.norm_epsilon));
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", false);
  config.initializer_range = static_cast<float>(json.number_or("initializer_range", 0.02));
  refuse_unbuilt(json, config);
  return config;
}

nlohmann::json describe_shape(const ModelConfig& config) {
  return {{"model_type", config.model_type},
          {"hidden_act", "silu"},
          {"hidden_size", config.hidden_size},
          {"intermediate_size", config.intermediate_size},
          {"num_hidden_layers", config.num_layers},
          {"num_attention_heads", config.num_heads},
          {"num_key_value_heads", config.num_kv_heads},
          {"head_dim", config.head_dim},
          {"vocab_size", config.vocab_size},
          {"max_position_embeddings", config.max_position},
          {"rms_norm_eps", as_written(config.norm_epsilon)},
          {"attention_dropout", 0.0},
          {"tie_word_embeddings", config.tied_embeddings},
          {"initializer_range", as_written(config.initializer_range)},
          {"use_cache", true}};
}

int64_t parse_window(const JsonObject& json, int64_t absent) {
  const bool is_null = json.value().contains("sliding_window") && !json.has("sliding_window");
  return is_null ? 0 : json.has("sliding_window") ? positive(json, "sliding_window") : absent;
}

std::vector<int64_t> parse_layer_windows(const JsonObject& json, int64_t num_layers) {
  const bool used = json.boolean_or("use_sliding_window", false);
  const int64_t window = used ? parse_window(json, 4096) : 0;
  std::vector<int64_t> windows(static_cast<size_t>(num_layers), 0);
  if (json.has("layer_types")) {
    const std::vector<std::string> types = json.texts("layer_types");
    if (types.size() != windows.size())
      json.fail("layer_types",
                fmt::format("names {} layers; the model has {}", types.size(), num_layers));
    for (size_t layer = 0; layer < types.size(); ++layer) {
      if (types[layer] == "full_attention") continue;
      if (types[layer] != "sliding_attention" || window == 0)
        json.fail("layer_types",
                  fmt::format("asks for \"{}\" in layer {}; snug has full_attention, and "
                              "sliding_attention with use_sliding_window and sliding_window",
                              types[layer], layer));
      windows[layer] = window;
    }
  } else if (window > 0) {
    const int64_t full = json.integer_or("max_window_layers", 28);
    if (full < 0) json.fail("max_window_layers", fmt::format("is {}; expected 0 or more", full));
    for (int64_t layer = full; layer < num_layers; ++layer)
      windows[static_cast<size_t>(layer)] = window;
  }
  return windows;
}

void describe_layer_windows(const ModelConfig& config, nlohmann::json& json) {
  const auto& windows = config.windows;
  const int64_t widest = windows.empty() ? 0 : *std::max_element(windows.begin(), windows.end());
  json["use_sliding_window"] = widest > 0;
  json["sliding_window"] = nullptr;
  if (widest == 0) return;
  json["sliding_window"] = widest;
  const auto first = std::find_if(windows.begin(), windows.end(), [](int64_t w) { return w > 0; });
  json["max_window_layers"] = first - windows.begin();
  for (const int64_t window : windows)
    json["layer_types"].push_back(window > 0 ? "sliding_attention" : "full_attention");
}

int64_t positive(const JsonObject& json, std::string_view key, int64_t most) {
  const int64_t value = json.integer(key);
  if (value <= 0) json.fail(key, fmt::format("is {}; expected a positive integer", value));
  if (value > most)
    json.fail(key, fmt::format("is {}; snug takes models of at most {}. Is the file damaged?",
                               value, most));
  return value;
}

int64_t positive_or(const JsonObject& json, std::string_view key, int64_t fallback, int64_t most) {
  return json.has(key) ? positive(json, key, most) : fallback;
}

}  // namespace snug::models
