// The gpt_neox family (GPT-NeoX, Pythia, Dolly 2, StableLM-Base-Alpha, RedPajama-INCITE): queries,
// keys and values in one tensor, head by head; attention and a plain mlp, each with a layer norm of
// its own, in parallel or in sequence; a quarter of each head is rotated.
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

Layer layer_of(const ModelConfig& config, int64_t layer) {
  const bool bias = config.attention_bias;
  AttentionBlock fused = attention(config, layer, {bias, bias});
  fused.query_key_value.fused = "attention.query_key_value";
  fused.query_key_value.order = RowOrder::by_group;
  fused.output.module = "attention.dense";
  const Activation gelu = config.gelu_tanh ? Activation::gelu_tanh : Activation::gelu;
  return {.branches = {{.norm_before = layer_norm(config, "input_layernorm"),
                        .block = std::move(fused),
                        .norm_after = {}},
                       {.norm_before = layer_norm(config, "post_attention_layernorm"),
                        .block = plain_mlp(config, {"mlp.dense_h_to_4h", "mlp.dense_4h_to_h"}, gelu,
                                           true),
                        .norm_after = {}}},
          .parallel = config.parallel_residual};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.embedding = "gpt_neox.embed_in";
  stack.prefix = "gpt_neox.layers";
  stack.final_norm = layer_norm(config, "gpt_neox.final_layer_norm");
  stack.head = "embed_out";
  stack.ignored = {"attention.bias", "attention.masked_bias"};
  return stack;
}

// The tanh form of gelu has three names.
ModelConfig parse(const JsonObject& json) {
  ModelConfig config =
      parse_shape(json, {.norm_epsilon = 1e-5,
                         .norm_epsilon_key = "layer_norm_eps",
                         .activations = {"gelu", "gelu_fast", "gelu_new", "gelu_pytorch_tanh"}});
  config.gelu_tanh = json.text_or("hidden_act", "gelu") != "gelu";
  config.partial_rotary_factor = parse_partial_rotary(json, config.head_dim, 0.25, "rotary_pct");
  config.rope = parse_rope(json, {.partial = true, .theta = "rotary_emb_base"});
  config.parallel_residual = json.boolean_or("use_parallel_residual", true);
  config.attention_bias = json.boolean_or("attention_bias", true);
  require_plain_heads(json, config);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["layer_norm_eps"] = json["rms_norm_eps"];
  for (const char* key : {"rms_norm_eps", "num_key_value_heads", "head_dim"}) json.erase(key);
  json["hidden_act"] = config.gelu_tanh ? "gelu_fast" : "gelu";
  json["rotary_pct"] = config.partial_rotary_factor;
  json["rotary_emb_base"] = config.rope.theta;
  json["use_parallel_residual"] = config.parallel_residual;
  json["attention_bias"] = config.attention_bias;
  json["hidden_dropout"] = 0.0;
}

void published(ModelConfig& config) {
  config.partial_rotary_factor = 0.25;
  config.parallel_residual = config.attention_bias = true;
}

void gpt_neox_20b(ModelConfig& config) {
  published(config);
  config.gelu_tanh = true;
}

constexpr std::array kPresets{
    Preset{"gpt-neox-20b", 6144, 44, 64, 64, 96, 24576, 50432, 2048, 1e-5F, 1e4, false,
           gpt_neox_20b},
    Preset{"pythia-1.4b", 2048, 24, 16, 16, 128, 8192, 50304, 2048, 1e-5F, 1e4, false, published},
    Preset{"pythia-12b", 5120, 36, 40, 40, 128, 20480, 50688, 2048, 1e-5F, 1e4, false, published},
    Preset{"pythia-160m", 768, 12, 12, 12, 64, 3072, 50304, 2048, 1e-5F, 1e4, false, published},
    Preset{"pythia-1b", 2048, 16, 8, 8, 256, 8192, 50304, 2048, 1e-5F, 1e4, false, published},
    Preset{"pythia-2.8b", 2560, 32, 32, 32, 80, 10240, 50304, 2048, 1e-5F, 1e4, false, published},
    Preset{"pythia-410m", 1024, 24, 16, 16, 64, 4096, 50304, 2048, 1e-5F, 1e4, false, published},
    Preset{"pythia-6.9b", 4096, 32, 32, 32, 128, 16384, 50432, 2048, 1e-5F, 1e4, false, published},
    Preset{"pythia-70m", 512, 6, 8, 8, 64, 2048, 50304, 2048, 1e-5F, 1e4, false, published},
    Preset{"stablelm-base-alpha-3b", 4096, 16, 32, 32, 128, 16384, 50688, 4096, 1e-5F, 1e4, false,
           published},
    Preset{"stablelm-base-alpha-7b", 6144, 16, 48, 48, 128, 24576, 50432, 4096, 1e-5F, 1e4, false,
           published},
};

}  // namespace

const Family kGptNeox{"gpt_neox",
                      "GPTNeoXForCausalLM",
                      stack,
                      parse,
                      describe,
                      kPresets,
                      "GPT-NeoX, Pythia, Dolly 2, RedPajama-INCITE"};

}  // namespace snug::models
