#include "models/families/gemma_blocks.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace snug::models {

Norm gemma_norm(const ModelConfig& config, std::string module, int64_t width) {
  return {std::move(module), width, config.norm_epsilon, NormForm::rms_one_plus_w};
}

Norm gemma_norm(const ModelConfig& config, std::string module) {
  return gemma_norm(config, std::move(module), config.hidden_size);
}

GatedMlp gelu_mlp(const ModelConfig& config) {
  GatedMlp mlp = gated_mlp(config);
  mlp.activation = Activation::gelu_tanh;
  return mlp;
}

namespace {

float score_scale(double query_scalar) { return static_cast<float>(1.0 / std::sqrt(query_scalar)); }

}  // namespace

AttentionBlock scaled_attention(const ModelConfig& config, int64_t layer) {
  const bool bias = config.attention_bias;
  AttentionBlock scaled = attention(config, layer, {bias, bias});
  scaled.scale = score_scale(config.query_scalar);
  scaled.softcap = config.attention_softcap;
  return scaled;
}

Layer sandwich_layer(const ModelConfig& config, AttentionBlock attention) {
  return {{{.norm_before = gemma_norm(config, "input_layernorm"),
            .block = std::move(attention),
            .norm_after = gemma_norm(config, "post_attention_layernorm")},
           {.norm_before = gemma_norm(config, "pre_feedforward_layernorm"),
            .block = gelu_mlp(config),
            .norm_after = gemma_norm(config, "post_feedforward_layernorm")}}};
}

ModelConfig parse_gemma_shape(const base::JsonObject& json, int64_t max_position,
                              const GemmaSizes& absent) {
  ModelConfig config = parse_shape(json, {.heads = absent.heads,
                                          .vocab_size = absent.vocab_size,
                                          .kv_heads = 4,
                                          .head_dim = 256,
                                          .max_position = max_position,
                                          .tied_embeddings = true,
                                          .activation_key = "hidden_activation",
                                          .activations = {"gelu_pytorch_tanh"}});
  config.attention_bias = json.boolean_or("attention_bias", false);
  config.query_scalar = json.number_or("query_pre_attn_scalar", 256.0);
  if (!(config.query_scalar > 0) || !std::isnormal(score_scale(config.query_scalar)))
    json.fail("query_pre_attn_scalar",
              fmt::format("is {}; expected a number above 0 whose inverse root, the scale of the "
                          "scores, fp32 can hold",
                          config.query_scalar));
  refuse_bidirectional(json);
  return config;
}

void describe_gemma_shape(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  json["hidden_act"] = json["hidden_activation"] = "gelu_pytorch_tanh";
  json["query_pre_attn_scalar"] = config.query_scalar;
  json["attn_logit_softcapping"] = softcap_or_null(config.attention_softcap);
  json["final_logit_softcapping"] = softcap_or_null(config.logit_softcap);
  describe_window(config, json);
  describe_layer_types(config, json);
}

float parse_softcap(const base::JsonObject& json, std::string_view key, double absent) {
  const bool is_null = json.value().contains(key) && !json.has(key);
  const double cap = is_null ? 0 : json.number_or(key, absent);
  const auto rounded = static_cast<float>(cap);
  const bool is_given = json.has(key);  // refused if 0: transformers would divide by it
  if (!(rounded >= 0) || !std::isfinite(rounded) || (rounded == 0 && (is_given || cap != 0)))
    json.fail(key, fmt::format("is {}; expected a number above 0 that fp32 has, or null", cap));
  return rounded;
}

nlohmann::json softcap_or_null(float cap) {
  return cap > 0 ? nlohmann::json(as_written(cap)) : nlohmann::json();
}

}  // namespace snug::models
