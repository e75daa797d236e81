// The llama family: Llama 1, 2, 3, 3.1, 3.2, Code Llama, Yi, TinyLlama, SmolLM2.
#include <fmt/format.h>

#include "models/families.h"

namespace snug::models {
namespace {

using base::JsonObject;

void parse_scaling(const JsonObject& scaling, RopeConfig& rope) {
  rope.theta = scaling.number_or("rope_theta", rope.theta);
  const std::string type = scaling.text_or("rope_type", scaling.text_or("type", "default"));
  if (type == "default") return;
  if (type != "linear" && type != "llama3")
    scaling.fail(
        "rope_type",
        fmt::format("is \"{}\", which is not built; snug has default, linear and llama3", type));
  rope.factor = scaling.number("factor");
  if (!(rope.factor >= 1.0)) scaling.fail("factor", "must be at least 1");
  rope.scaling = type == "linear" ? RopeScaling::linear : RopeScaling::llama3;
  if (rope.scaling == RopeScaling::linear) return;
  rope.low_freq_factor = scaling.number("low_freq_factor");
  rope.high_freq_factor = scaling.number("high_freq_factor");
  rope.original_max_position = positive(scaling, "original_max_position_embeddings");
  if (!(rope.high_freq_factor > rope.low_freq_factor))
    scaling.fail("high_freq_factor", "must be above low_freq_factor");
}

// transformers 4 writes "rope_theta" and "rope_scaling"; transformers 5 "rope_parameters" with
// both.
RopeConfig parse_rope(const JsonObject& json) {
  RopeConfig rope;
  rope.theta = json.number_or("rope_theta", rope.theta);
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (json.has(key)) parse_scaling(json.object(key), rope);
  return rope;
}

// Refuses what a file may ask for and the family does not do.
void refuse_unbuilt(const JsonObject& json, const ModelConfig& config) {
  if (config.num_heads % config.num_kv_heads != 0)
    json.fail("num_key_value_heads", fmt::format("is {}; {} attention heads cannot share that many",
                                                 config.num_kv_heads, config.num_heads));
  if (config.head_dim % 2 != 0)
    json.fail("head_dim",
              fmt::format("is {}; rotary embeddings need an even number", config.head_dim));
  if (const auto activation = json.text_or("hidden_act", "silu"); activation != "silu")
    json.fail("hidden_act", fmt::format("is \"{}\"; this family has only silu", activation));
  if (json.number_or("attention_dropout", 0.0) != 0.0)
    json.fail("attention_dropout", "is not 0; snug does not drop attention scores");
  if (json.has("quantization_config"))
    json.fail("quantization_config",
              "is present; quantised folders are not built yet, use the "
              "16-bit weights");
}

}  // namespace

ModelConfig parse_llama(const JsonObject& json) {
  ModelConfig config;
  config.model_type = "llama";
  config.hidden_size = positive(json, "hidden_size");
  config.num_layers = positive(json, "num_hidden_layers");
  config.num_heads = positive(json, "num_attention_heads");
  config.num_kv_heads = positive_or(json, "num_key_value_heads", config.num_heads);
  if (!json.has("head_dim") && config.hidden_size % config.num_heads != 0)
    json.fail("num_attention_heads", fmt::format("is {}, which does not divide hidden_size {}",
                                                 config.num_heads, config.hidden_size));
  config.head_dim = positive_or(json, "head_dim", config.hidden_size / config.num_heads);
  config.intermediate_size = positive(json, "intermediate_size");
  config.vocab_size = positive(json, "vocab_size");
  config.max_position = positive_or(json, "max_position_embeddings", 2048);
  config.norm_epsilon = static_cast<float>(json.number_or("rms_norm_eps", 1e-6));
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  config.mlp_bias = json.boolean_or("mlp_bias", false);
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", false);
  config.initializer_range = static_cast<float>(json.number_or("initializer_range", 0.02));
  refuse_unbuilt(json, config);
  return config;
}

}  // namespace snug::models
