#include "models/config/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace snug::models {
namespace {

using base::JsonObject;

void refuse_activation(const JsonObject& json, const Defaults& defaults) {
  if (defaults.activations.empty()) return;
  const std::string activation =
      json.text_or(defaults.activation_key, std::string(defaults.activations.front()));
  if (std::ranges::find(defaults.activations, activation) == defaults.activations.end())
    json.fail(defaults.activation_key, fmt::format("is \"{}\"; this family has only {}", activation,
                                                   fmt::join(defaults.activations, ", ")));
}

// The highest dropout rate under the family's own keys. Refuses dropout under other keys.
double parse_dropout(const JsonObject& json, const Defaults& defaults) {
  double dropout = 0;
  for (const std::string_view key : defaults.dropout_keys) {
    const double rate = json.number_or(key, defaults.dropout);
    if (!(rate >= 0 && rate < 1))
      json.fail(key, fmt::format("is {}; expected a number of at least 0 and below 1", rate));
    dropout = std::max(dropout, rate);
  }
  for (const std::string_view key :
       {"attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop"})
    if (std::ranges::find(defaults.dropout_keys, key) == defaults.dropout_keys.end() &&
        json.number_or(key, 0.0) != 0.0)
      json.fail(key, "is not 0; snug drops nothing but LoRA's inputs, so set it to 0");
  return dropout;
}

// Refuses settings that a file may contain and that no family supports.
void refuse_unbuilt(const JsonObject& json, const ModelConfig& config, const Defaults& defaults) {
  if (config.num_heads % config.num_kv_heads != 0)
    json.fail("num_key_value_heads",
              fmt::format("is {}{}; {} attention heads cannot share that many",
                          json.has("num_key_value_heads") ? "" : "absent and stands for ",
                          config.num_kv_heads, config.num_heads));
  if (config.positions == Positions::rotary && config.head_dim % 2 != 0)
    json.fail(json.has("head_dim") ? "head_dim" : defaults.keys.heads,
              fmt::format("leaves heads of {} elements; rotary embeddings need an even number",
                          config.head_dim));
  refuse_activation(json, defaults);
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"})
    if (!defaults.has_experts && json.has(key))
      json.fail(key, "is present; this family has no mixtures of experts here");
}

// The fallback is for an absent key; 0: the key must be given.
int64_t positive_with(const JsonObject& json, std::string_view key, int64_t fallback,
                      int64_t most) {
  return fallback == 0 ? positive(json, key, most) : positive_or(json, key, fallback, most);
}

int64_t widest_window(const ModelConfig& config) {
  const auto& windows = config.windows;
  return windows.empty() ? 0 : *std::max_element(windows.begin(), windows.end());
}

}  // namespace

std::string_view key_present(const JsonObject& json, std::initializer_list<std::string_view> keys) {
  const auto* const found =
      std::ranges::find_if(keys, [&](std::string_view key) { return json.has(key); });
  return found == keys.end() ? *keys.begin() : *found;
}

double as_written(float value) { return std::stod(fmt::format("{}", value)); }

double parse_scale(const JsonObject& json, std::string_view key, double absent) {
  const double scale = json.number_or(key, absent);
  if (!(scale > 0) || !std::isnormal(static_cast<float>(scale)))
    json.fail(key, fmt::format("is {}; expected a number above 0 that fp32 has", scale));
  return scale;
}

void parse_granite_scales(const base::JsonObject& json, ModelConfig& config) {
  config.embedding_scale = parse_scale(json, "embedding_multiplier", 1.0);
  config.residual_scale = parse_scale(json, "residual_multiplier", 1.0);
  config.attention_scale = parse_scale(json, "attention_multiplier", 1.0);
  config.logit_scale = 1.0 / parse_scale(json, "logits_scaling", 1.0);
}

void describe_granite_scales(const ModelConfig& config, nlohmann::json& json) {
  json["embedding_multiplier"] = config.embedding_scale;
  json["residual_multiplier"] = config.residual_scale;
  json["attention_multiplier"] = config.attention_scale;
  json["logits_scaling"] = 1.0 / config.logit_scale;
}

void require_plain_heads(const JsonObject& json, const ModelConfig& config) {
  const std::string& family = config.model_type;
  if (config.num_kv_heads != config.num_heads)
    json.fail("num_key_value_heads",
              fmt::format("is not num_attention_heads; heads of {} share no keys", family));
  if (config.head_dim * config.num_heads != config.hidden_size)
    json.fail("head_dim",
              fmt::format("is not hidden_size / num_attention_heads, as {} has it", family));
}

void refuse_bidirectional(const JsonObject& json) {
  if (json.boolean_or("use_bidirectional_attention", false))
    json.fail("use_bidirectional_attention", "is true; snug has causal attention only");
}

ModelConfig parse_shape(const JsonObject& json, const Defaults& defaults) {
  ModelConfig config;
  config.model_type = json.text("model_type");
  const SizeKeys& keys = defaults.keys;
  config.hidden_size = positive(json, keys.hidden, kMaxHidden);
  config.num_layers = positive(json, keys.layers, kMaxLayers);
  config.num_heads = positive_with(json, keys.heads, defaults.heads, kMaxHeads);
  // A missing key means the class's default; null means as many as there are heads.
  const bool given = json.value().contains("num_key_value_heads");
  const int64_t kv_heads = given || defaults.kv_heads == 0 ? config.num_heads : defaults.kv_heads;
  config.num_kv_heads = positive_or(json, "num_key_value_heads", kv_heads, kMaxHeads);
  const bool divided = !json.has("head_dim") && defaults.head_dim == 0;
  if (divided && config.hidden_size % config.num_heads != 0)
    json.fail(keys.heads, fmt::format("is {}, which does not divide {} {}", config.num_heads,
                                      keys.hidden, config.hidden_size));
  const int64_t head_dim = divided ? config.hidden_size / config.num_heads : defaults.head_dim;
  config.head_dim = positive_or(json, "head_dim", head_dim, kMaxHeads);
  const int64_t intermediate = defaults.intermediate_factor * config.hidden_size;
  config.intermediate_size =
      intermediate == 0 ? positive(json, keys.intermediate, kMaxIntermediate)
                        : positive_or(json, keys.intermediate, intermediate, kMaxIntermediate);
  config.vocab_size = positive_with(json, "vocab_size", defaults.vocab_size, kMaxVocabulary);
  config.max_position = positive_or(json, keys.max_position, defaults.max_position);
  config.positions = defaults.positions;
  const std::string_view epsilon_key = defaults.norm_epsilon_key;
  config.norm_epsilon = static_cast<float>(json.number_or(epsilon_key, defaults.norm_epsilon));
  if (!(config.norm_epsilon >= 0) || !std::isfinite(config.norm_epsilon))
    json.fail(epsilon_key,
              fmt::format("is {}; expected a number of at least 0", config.norm_epsilon));
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", defaults.tied_embeddings);
  config.initializer_range = static_cast<float>(json.number_or("initializer_range", 0.02));
  config.dropout = parse_dropout(json, defaults);
  refuse_unbuilt(json, config, defaults);
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

void rename_key(nlohmann::json& json, const char* from, const char* to) {
  json[to] = json.at(from);
  json.erase(from);
}

int64_t parse_window(const JsonObject& json, int64_t absent) {
  const bool is_null = json.value().contains("sliding_window") && !json.has("sliding_window");
  return is_null ? 0 : json.has("sliding_window") ? positive(json, "sliding_window") : absent;
}

void set_window(ModelConfig& config, int64_t window) {
  config.windows.assign(static_cast<size_t>(config.num_layers), window);
}

void set_window_pattern(ModelConfig& config, int64_t window, int64_t pattern) {
  set_window(config, window);
  for (int64_t layer = pattern - 1; layer < config.num_layers; layer += pattern)
    config.windows[static_cast<size_t>(layer)] = 0;
}

void leave_full_layers_unrotated(ModelConfig& config) {
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    if (config.window_of(layer) == 0) config.unrotated_layers.push_back(layer);
}

void describe_window(const ModelConfig& config, nlohmann::json& json) {
  json["sliding_window"] = nullptr;
  if (const int64_t widest = widest_window(config); widest > 0) json["sliding_window"] = widest;
}

std::vector<int64_t> parse_layer_types(const JsonObject& json, int64_t num_layers, int64_t window,
                                       std::string_view window_keys) {
  const std::vector<std::string> types = json.texts("layer_types");
  std::vector<int64_t> windows(static_cast<size_t>(num_layers), 0);
  if (types.size() != windows.size())
    json.fail("layer_types",
              fmt::format("names {} layers; the model has {}", types.size(), num_layers));
  for (size_t layer = 0; layer < types.size(); ++layer) {
    if (types[layer] == "full_attention") continue;
    if (types[layer] != "sliding_attention" || window == 0)
      json.fail("layer_types",
                fmt::format("asks for \"{}\" in layer {}; snug has full_attention, and "
                            "sliding_attention where the file sets {}",
                            types[layer], layer, window_keys));
    windows[layer] = window;
  }
  return windows;
}

void describe_layer_types(const ModelConfig& config, nlohmann::json& json) {
  for (const int64_t window : config.windows)
    json["layer_types"].push_back(window > 0 ? "sliding_attention" : "full_attention");
}

std::vector<int64_t> parse_layer_windows(const JsonObject& json, int64_t num_layers) {
  const bool used = json.boolean_or("use_sliding_window", false);
  const int64_t window = used ? parse_window(json, 4096) : 0;
  if (json.has("layer_types"))
    return parse_layer_types(json, num_layers, window, "use_sliding_window and sliding_window");
  std::vector<int64_t> windows(static_cast<size_t>(num_layers), 0);
  if (window == 0) return windows;
  const int64_t full = json.integer_or("max_window_layers", 28);
  if (full < 0) json.fail("max_window_layers", fmt::format("is {}; expected 0 or more", full));
  for (int64_t layer = full; layer < num_layers; ++layer)
    windows[static_cast<size_t>(layer)] = window;
  return windows;
}

void describe_layer_windows(const ModelConfig& config, nlohmann::json& json) {
  const auto& windows = config.windows;
  const int64_t widest = widest_window(config);
  json["use_sliding_window"] = widest > 0;
  json["sliding_window"] = nullptr;
  if (widest == 0) return;
  json["sliding_window"] = widest;
  const auto first = std::find_if(windows.begin(), windows.end(), [](int64_t w) { return w > 0; });
  json["max_window_layers"] = first - windows.begin();
  describe_layer_types(config, json);
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
