// What the gemma families share: norms that multiply by 1 + w, embeddings scaled by the root of
// their width, gelu's tanh form in the mlp; and, from Gemma 2 on, a norm before and after each
// block, a scale of the scores from config.json, soft caps, and windows in some layers.
#pragma once

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/json.h"
#include "models/config/config_keys.h"
#include "models/families/llama_blocks.h"

namespace snug::models {

// A norm over the last `width` elements, or of the residual stream.
Norm gemma_norm(const ModelConfig& config, std::string module, int64_t width);
Norm gemma_norm(const ModelConfig& config, std::string module);

// mlp.{gate,up,down}_proj with the tanh form of gelu.
GatedMlp gelu_mlp(const ModelConfig& config);

// llama's attention with the config's scale and soft cap of the scores.
AttentionBlock scaled_attention(const ModelConfig& config, int64_t layer);

// {input,post_attention}_layernorm around attention, {pre,post}_feedforward_layernorm around mlp.
Layer sandwich_layer(const ModelConfig& config, AttentionBlock attention);

// A decoder with these layers, its embeddings scaled and its logits capped as the config says.
Stack gemma_decoder(const ModelConfig& config, const auto& layer) {
  Stack stack = decoder(config, layer);
  stack.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  stack.final_norm = gemma_norm(config, "model.norm");
  stack.logit_softcap = config.logit_softcap;
  return stack;
}

// Parses the keys that Gemma 2 and 3 share: the shape, hidden_activation, attention_bias,
// query_pre_attn_scalar. `absent`: sizes where the file gives none, which it may leave out only
// where one is above 0.
struct GemmaSizes {
  int64_t heads = 0;
  int64_t vocab_size = 0;
};
ModelConfig parse_gemma_shape(const base::JsonObject& json, int64_t max_position,
                              const GemmaSizes& absent = {});
void describe_gemma_shape(const ModelConfig& config, nlohmann::json& json);

// Parses a soft cap; null means 0, no cap.
float parse_softcap(const base::JsonObject& json, std::string_view key, double absent);
nlohmann::json softcap_or_null(float cap);

}  // namespace snug::models
