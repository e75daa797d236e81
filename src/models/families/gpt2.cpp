// The gpt2 family (GPT-2, DistilGPT-2, DialoGPT): learned positions; layer norms before the blocks;
// queries, keys and values in one tensor; a plain mlp; biases on all linears. Its linears are
// transformers' Conv1D, stored (in, out). Published files call modules "h.0.ln_1", without the
// prefix "transformer." that transformers writes today.
#include <algorithm>
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
  fused.query_key_value.fused = "attn.c_attn";
  for (Linear& part : fused.query_key_value.parts) part.transposed = true;
  fused.output.module = "attn.c_proj";
  fused.output.transposed = true;
  return fused;
}

Mlp mlp_of(const ModelConfig& config) {
  Mlp mlp = plain_mlp(config, {"mlp.c_fc", "mlp.c_proj"}, Activation::gelu_tanh, true);
  mlp.up.transposed = mlp.down.transposed = true;
  return mlp;
}

Layer layer_of(const ModelConfig& config, int64_t layer) {
  return {{{.norm_before = layer_norm(config, "ln_1"),
            .block = attention_of(config, layer),
            .norm_after = {}},
           {.norm_before = layer_norm(config, "ln_2"), .block = mlp_of(config), .norm_after = {}}}};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.embedding = "transformer.wte";
  stack.positions = "transformer.wpe";
  stack.position_rows = config.max_position;
  stack.prefix = "transformer.h";
  stack.optional_prefix = "transformer.";
  stack.final_norm = layer_norm(config, "transformer.ln_f");
  stack.ignored = {"attn.bias", "attn.masked_bias"};
  return stack;
}

constexpr SizeKeys kKeys{"n_embd", "n_layer", "n_head", "n_inner", "n_positions"};

// transformers also accepts the names of these keys in other families, and prefers them where a
// file has both.
SizeKeys keys_of(const JsonObject& json) {
  SizeKeys keys = kKeys;
  keys.hidden = key_present(json, {"hidden_size", keys.hidden});
  keys.layers = key_present(json, {"num_hidden_layers", keys.layers});
  keys.heads = key_present(json, {"num_attention_heads", keys.heads});
  keys.max_position = key_present(json, {"max_position_embeddings", keys.max_position});
  return keys;
}

ModelConfig parse(const JsonObject& json) {
  ModelConfig config =
      parse_shape(json, {.keys = keys_of(json),
                         .intermediate_factor = 4,
                         .max_position = 1024,
                         .norm_epsilon = 1e-5,
                         .tied_embeddings = true,
                         .positions = Positions::learned,
                         .norm_epsilon_key = "layer_norm_epsilon",
                         .activation_key = "activation_function",
                         .activations = {"gelu_new", "gelu_pytorch_tanh"},
                         .dropout_keys = {"resid_pdrop", "embd_pdrop", "attn_pdrop"},
                         .dropout = 0.1});
  require_plain_heads(json, config);
  for (const char* key :
       {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention"})
    if (json.boolean_or(key, false)) json.fail(key, "is true, which is not built for gpt2");
  if (!json.boolean_or("scale_attn_weights", true))
    json.fail("scale_attn_weights", "is false, which is not built for gpt2");
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  rename_key(json, "hidden_size", kKeys.hidden.data());
  rename_key(json, "num_hidden_layers", kKeys.layers.data());
  rename_key(json, "num_attention_heads", kKeys.heads.data());
  rename_key(json, "intermediate_size", kKeys.intermediate.data());
  rename_key(json, "max_position_embeddings", kKeys.max_position.data());
  rename_key(json, "rms_norm_eps", "layer_norm_epsilon");
  rename_key(json, "attention_dropout", "attn_pdrop");
  for (const char* key : {"hidden_act", "num_key_value_heads", "head_dim"}) json.erase(key);
  json["activation_function"] = "gelu_new";
  json["resid_pdrop"] = json["embd_pdrop"] = json["attn_pdrop"] = config.dropout;
}

void published(ModelConfig& config) { config.positions = Positions::learned; }

constexpr std::array kPresets{
    Preset{"gpt2", 768, 12, 12, 12, 64, 3072, 50257, 1024, 1e-5F, 1e4, true, published},
    Preset{"gpt2-large", 1280, 36, 20, 20, 64, 5120, 50257, 1024, 1e-5F, 1e4, true, published},
    Preset{"gpt2-medium", 1024, 24, 16, 16, 64, 4096, 50257, 1024, 1e-5F, 1e4, true, published},
    Preset{"gpt2-xl", 1600, 48, 25, 25, 64, 6400, 50257, 1024, 1e-5F, 1e4, true, published},
};

}  // namespace

const Family kGpt2{"gpt2", "GPT2LMHeadModel", stack, parse, describe, kPresets, "GPT-2"};

}  // namespace snug::models
