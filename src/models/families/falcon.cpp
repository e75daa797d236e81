// The falcon family in its three forms: 7B, whose heads share one key head and whose blocks run in
// parallel after one norm; 40B and 180B, with grouped heads and a norm for each parallel block; and
// Falcon-RW, with a key head for each query head, sequential blocks, biases, and scores that fall
// with the distance of the key (ALiBi, scaled as the scores are). In all three, the rows of a
// group's queries, of its key and of its value follow one another.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

AttentionBlock attention_of(const ModelConfig& config, int64_t layer) {
  const bool bias = config.attention_bias;
  AttentionBlock fused = attention(config, layer, {bias, bias});
  fused.query_key_value.fused = "self_attention.query_key_value";
  fused.query_key_value.order = RowOrder::by_group;
  if (config.positions == Positions::alibi) fused.alibi_scale = fused.scale;
  fused.output.module = "self_attention.dense";
  return fused;
}

Layer layer_of(const ModelConfig& config, int64_t layer) {
  const bool has_two = config.parallel_residual && config.parallel_norms == 2;
  const char* before_attention = has_two ? "ln_attn" : "input_layernorm";
  const char* before_mlp = has_two                    ? "ln_mlp"
                           : config.parallel_residual ? before_attention
                                                      : "post_attention_layernorm";
  return {.branches = {{.norm_before = layer_norm(config, before_attention),
                        .block = attention_of(config, layer),
                        .norm_after = {}},
                       {.norm_before = layer_norm(config, before_mlp),
                        .block = plain_mlp(config, {"mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
                                           Activation::gelu, config.attention_bias),
                        .norm_after = {}}},
          .parallel = config.parallel_residual};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.embedding = "transformer.word_embeddings";
  stack.prefix = "transformer.h";
  stack.optional_prefix = "transformer.";
  stack.final_norm = layer_norm(config, "transformer.ln_f");
  return stack;
}

// Whether this is the form of 40B and 180B.
bool is_grouped_form(const ModelConfig& config) {
  const bool is_grouped = config.num_kv_heads > 1 && config.num_kv_heads < config.num_heads;
  return is_grouped || (config.parallel_residual && config.parallel_norms == 2);
}

void parse_form(const JsonObject& json, ModelConfig& config) {
  const bool grouped = json.boolean_or("new_decoder_architecture", false);
  const bool shared = !grouped && json.boolean_or("multi_query", true);
  config.parallel_residual = json.boolean_or("parallel_attn", true);
  if (grouped && !config.parallel_residual)
    json.fail("parallel_attn", "is false; blocks stand side by side in the new architecture");
  config.parallel_norms = positive_or(json, "num_ln_in_parallel_attn", grouped ? 2 : 1);
  if (config.parallel_norms > (grouped ? 2 : 1))
    json.fail("num_ln_in_parallel_attn",
              fmt::format("is {}; the form with new_decoder_architecture = {} has at most {}",
                          config.parallel_norms, grouped, grouped ? 2 : 1));
  config.num_kv_heads = shared ? 1 : positive_or(json, "num_kv_heads", config.num_heads, kMaxHeads);
  if (grouped ? config.num_heads % config.num_kv_heads != 0
              : !shared && config.num_kv_heads != config.num_heads)
    json.fail("num_kv_heads", fmt::format("is {}; {} heads cannot share that many in this form",
                                          config.num_kv_heads, config.num_heads));
}

ModelConfig parse(const JsonObject& json) {
  const SizeKeys keys{.hidden = key_present(json, {"hidden_size", "n_embed"}),
                      .intermediate = "ffn_hidden_size"};
  const bool is_alibi = json.boolean_or("alibi", false);
  ModelConfig config =
      parse_shape(json, {.keys = keys,
                         .intermediate_factor = 4,
                         .norm_epsilon = 1e-5,
                         .tied_embeddings = true,
                         .positions = is_alibi ? Positions::alibi : Positions::rotary,
                         .norm_epsilon_key = "layer_norm_epsilon",
                         .activation_key = "activation",
                         .activations = {"gelu"}});
  require_plain_heads(json, config);
  parse_form(json, config);
  config.attention_bias = json.boolean_or("bias", false);
  if (!is_alibi) config.rope = parse_rope(json);
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  rename_key(json, "intermediate_size", "ffn_hidden_size");
  rename_key(json, "num_key_value_heads", "num_kv_heads");
  rename_key(json, "rms_norm_eps", "layer_norm_epsilon");
  rename_key(json, "hidden_act", "activation");
  json.erase("head_dim");
  const bool grouped = is_grouped_form(config);
  json["activation"] = "gelu";
  json["new_decoder_architecture"] = grouped;
  json["multi_query"] = config.num_kv_heads == 1;
  json["parallel_attn"] = config.parallel_residual;
  if (grouped) json["num_ln_in_parallel_attn"] = config.parallel_norms;
  json["alibi"] = config.positions == Positions::alibi;
  json["bias"] = config.attention_bias;
  json["hidden_dropout"] = 0.0;
}

void side_by_side(ModelConfig& config) { config.parallel_residual = true; }

void grouped(ModelConfig& config) {
  side_by_side(config);
  config.parallel_norms = 2;
}

void refined_web(ModelConfig& config) {
  config.attention_bias = true;
  config.positions = Positions::alibi;
}

constexpr std::array kPresets{
    Preset{"falcon-180b", 14848, 80, 232, 8, 64, 59392, 65024, 2048, 1e-5F, 1e4, true, grouped},
    Preset{"falcon-40b", 8192, 60, 128, 8, 64, 32768, 65024, 2048, 1e-5F, 1e4, true, grouped},
    Preset{"falcon-7b", 4544, 32, 71, 1, 64, 18176, 65024, 2048, 1e-5F, 1e4, true, side_by_side},
    Preset{"falcon-rw-1b", 2048, 24, 32, 32, 64, 8192, 50304, 2048, 1e-5F, 1e4, true, refined_web},
};

}  // namespace

const Family kFalcon{"falcon",
                     "FalconForCausalLM",
                     stack,
                     parse,
                     describe,
                     kPresets,
                     "Falcon",
                     FamilyForm::decoder,
                     {.own_linear_class = true}};

}  // namespace snug::models
