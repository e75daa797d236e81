// The bloom family (BLOOM, BLOOMZ): scores that fall with the distance of the key (ALiBi); a layer
// norm of the embeddings; queries, keys and values in one tensor, head by head; a plain mlp; biases
// on all linears. Published files call modules "h.0.input_layernorm", without the prefix
// "transformer." that transformers writes today.
#include <array>
#include <nlohmann/json.hpp>

#include "models/config/config_keys.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

AttentionBlock attention_of(const ModelConfig& config, int64_t layer) {
  AttentionBlock fused = attention(config, layer, {.query_key_value = true, .output = true});
  fused.query_key_value.fused = "self_attention.query_key_value";
  fused.query_key_value.order = RowOrder::by_group;
  fused.alibi_scale = 1.0F;
  fused.output.module = "self_attention.dense";
  return fused;
}

Layer layer_of(const ModelConfig& config, int64_t layer) {
  return {{{.norm_before = layer_norm(config, "input_layernorm"),
            .block = attention_of(config, layer),
            .norm_after = {}},
           {.norm_before = layer_norm(config, "post_attention_layernorm"),
            .block = plain_mlp(config, {"mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
                               Activation::gelu_tanh, true),
            .norm_after = {}}}};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.embedding = "transformer.word_embeddings";
  stack.embedding_norm = layer_norm(config, "transformer.word_embeddings_layernorm");
  stack.prefix = "transformer.h";
  stack.optional_prefix = "transformer.";
  stack.final_norm = layer_norm(config, "transformer.ln_f");
  return stack;
}

// Files have one of the two names. There is no key for the size of the mlp, and no limit of
// positions: seq_length is only the length that the model was trained with.
ModelConfig parse(const JsonObject& json) {
  const SizeKeys keys{.hidden = key_present(json, {"n_embed", "hidden_size"}),
                      .layers = key_present(json, {"num_hidden_layers", "n_layer"}),
                      .heads = key_present(json, {"num_attention_heads", "n_head"}),
                      .intermediate = {},
                      .max_position = {}};
  ModelConfig config = parse_shape(json, {.keys = keys,
                                          .intermediate_factor = 4,
                                          .max_position = kMaxPositions,
                                          .norm_epsilon = 1e-5,
                                          .tied_embeddings = true,
                                          .positions = Positions::alibi,
                                          .norm_epsilon_key = "layer_norm_epsilon",
                                          .activation_key = {},
                                          .activations = {}});
  require_plain_heads(json, config);
  if (json.boolean_or("apply_residual_connection_post_layernorm", false))
    json.fail("apply_residual_connection_post_layernorm", "is true, which is not built for bloom");
  return config;
}

void describe(const ModelConfig& /*config*/, nlohmann::json& json) {
  rename_key(json, "num_hidden_layers", "n_layer");
  rename_key(json, "num_attention_heads", "n_head");
  rename_key(json, "rms_norm_eps", "layer_norm_epsilon");
  for (const char* key : {"hidden_act", "intermediate_size", "max_position_embeddings",
                          "num_key_value_heads", "head_dim"})
    json.erase(key);
  json["hidden_dropout"] = 0.0;
  json["apply_residual_connection_post_layernorm"] = false;
}

void published(ModelConfig& config) {
  config.positions = Positions::alibi;
  config.max_position = kMaxPositions;
}

// Presets are sorted by name: "bloom" itself has 176 billion parameters.
constexpr std::array kPresets{
    Preset{"bloom", 14336, 70, 112, 112, 128, 57344, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloom-1b1", 1536, 24, 16, 16, 96, 6144, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloom-1b7", 2048, 24, 16, 16, 128, 8192, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloom-3b", 2560, 30, 32, 32, 80, 10240, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloom-560m", 1024, 24, 16, 16, 64, 4096, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloom-7b1", 4096, 30, 32, 32, 128, 16384, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloomz", 14336, 70, 112, 112, 128, 57344, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloomz-1b1", 1536, 24, 16, 16, 96, 6144, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloomz-1b7", 2048, 24, 16, 16, 128, 8192, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloomz-3b", 2560, 30, 32, 32, 80, 10240, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloomz-560m", 1024, 24, 16, 16, 64, 4096, 250880, 0, 1e-5F, 1e4, true, published},
    Preset{"bloomz-7b1", 4096, 30, 32, 32, 128, 16384, 250880, 0, 1e-5F, 1e4, true, published},
};

}  // namespace

const Family kBloom{"bloom", "BloomForCausalLM", stack, parse, describe, kPresets, "BLOOM, BLOOMZ"};

}  // namespace snug::models
