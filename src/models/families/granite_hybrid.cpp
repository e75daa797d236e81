// The granitemoehybrid family, its dense models without Mamba (Granite 4.0 350M, 1B and Micro):
// granite's network, whose mlp has gate and up in one tensor.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr const char* kSizeKey = "shared_intermediate_size";

GatedMlp shared_mlp(const ModelConfig& config) {
  GatedMlp mlp = gated_mlp(config);
  mlp.gate_up.fused = "shared_mlp.input_linear";
  mlp.down.module = "shared_mlp.output_linear";
  return mlp;
}

Stack stack(const ModelConfig& config) {
  const bool bias = config.attention_bias;
  return decoder(config, [&](int64_t layer) {
    return pre_norm_layer(config, attention(config, layer, {bias, bias}), shared_mlp(config));
  });
}

void leave_unrotated(ModelConfig& config) {
  config.unrotated_layers.resize(static_cast<size_t>(config.num_layers));
  std::iota(config.unrotated_layers.begin(), config.unrotated_layers.end(), 0);
}

// A file that lists no layers has Mamba in all of them.
void refuse_mamba(const JsonObject& json) {
  const char* key = key_present(json, {"layer_types", "layers_block_type"}).data();
  constexpr const char* kMissing =
      "layers of Mamba (Granite 4.0 H), which are not built; the models without H load";
  if (!json.has(key)) json.fail(key, fmt::format("is absent and stands for {}", kMissing));
  const std::vector<std::string> types = json.texts(key);
  for (const std::string& type : types)
    if (type != "attention" && type != "full_attention")
      json.fail(key, fmt::format("names {}", kMissing));
  if (std::ssize(types) != json.integer_or("num_hidden_layers", std::ssize(types)))
    json.fail(key, "has not one word for each layer");
}

ModelConfig parse(const JsonObject& json) {
  refuse_mamba(json);
  if (const int64_t experts = json.integer_or("num_local_experts", 8); experts != 0)
    json.fail("num_local_experts",
              fmt::format("is {}; experts next to the mlp (Granite 4.0 H) are not built", experts));
  ModelConfig config = parse_shape(json, {.keys = {.intermediate = kSizeKey},
                                          .dropout_keys = {"attention_dropout"},
                                          .has_experts = true});
  config.rope = parse_rope(json);
  config.attention_bias = json.boolean_or("attention_bias", false);
  parse_granite_scales(json, config);
  if (json.text_or("position_embedding_type", "nope") != "rope") leave_unrotated(config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  rename_key(json, "intermediate_size", kSizeKey);
  json["attention_bias"] = config.attention_bias;
  describe_granite_scales(config, json);
  json["num_local_experts"] = 0;
  json["position_embedding_type"] = nullptr;
  if (config.unrotated_layers.empty()) json["position_embedding_type"] = "rope";
  json["layer_types"] =
      std::vector<std::string>(static_cast<size_t>(config.num_layers), "attention");
}

}  // namespace

const Family kGraniteHybrid{
    "granitemoehybrid",         "GraniteMoeHybridForCausalLM", stack, parse, describe, {},
    "Granite 4.0 without Mamba"};

}  // namespace snug::models
