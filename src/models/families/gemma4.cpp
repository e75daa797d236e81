// The gemma4_text and gemma4_unified_text families (the text part of Gemma 4): Gemma
// 3's layers with norms that multiply by w alone, with scores that are not scaled, and with a
// constant factor of what leaves a layer. Layers without a window have wider heads, fewer of them
// for keys, and in the larger models no projection of values. In the smaller models the last layers
// read keys and values of an earlier one, and every layer has an input from a second embedding. In
// the mixture every layer has experts next to its mlp, each of both with norms of its own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/gemma_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr double kWindowTheta = 1e4;
constexpr double kFullTheta = 1e6;
constexpr double kRotatedPart = 0.25;
constexpr int64_t kFullHeadDim = 512;
constexpr int64_t kPattern = 6;  // every so many layers one has no window
constexpr int64_t kTableRows = 262144;
constexpr const char* kOverrides = "per_layer_config";

int64_t first_sharing(const ModelConfig& config) {
  return config.num_layers - config.sharing_layers;
}

// The layer whose keys and values this one reads: the last of its window that has its own; -1 where
// there is none.
int64_t keys_layer(const ModelConfig& config, int64_t layer) {
  int64_t source = std::min(first_sharing(config), config.num_layers) - 1;
  while (source >= 0 && config.window_of(source) != config.window_of(layer)) --source;
  return source;
}

AttentionBlock attention_of(const ModelConfig& config, int64_t layer) {
  ModelConfig sized = config;
  const bool is_full = config.window_of(layer) == 0;
  if (is_full) {
    sized.head_dim = config.full_head_dim;
    sized.num_kv_heads = config.full_kv_heads;
  }
  const bool bias = config.attention_bias;
  AttentionBlock block = attention(sized, layer, {bias, bias});
  std::vector<Linear>& parts = block.query_key_value.parts;
  block.query_norm = rms_norm(config, "self_attn.q_norm", sized.head_dim);
  if (layer >= first_sharing(config)) {
    block.keys_of_layer = keys_layer(config, layer);
    parts.resize(1);
    return block;
  }
  block.key_norm = rms_norm(config, "self_attn.k_norm", sized.head_dim);
  block.value_norm = Norm{"", sized.head_dim, config.norm_epsilon, NormForm::rms_without_weight};
  block.keys_as_values = is_full && config.keys_as_values;
  if (block.keys_as_values) parts.pop_back();
  return block;
}

GatedMlp mlp_of(const ModelConfig& config, int64_t layer) {
  const bool is_wide = config.wide_sharing_mlps && layer >= first_sharing(config);
  GatedMlp mlp = gated_mlp(config, "mlp", config.intermediate_size * (is_wide ? 2 : 1));
  mlp.activation = Activation::gelu_tanh;
  return mlp;
}

// Experts and the mlp read the residual stream, and their sum is normed once more. The router's own
// norm has no weight, but its output is multiplied by one, and by 1 / sqrt(hidden).
ExpertsBlock experts_of(const ModelConfig& config, int64_t layer) {
  const int64_t hidden = config.hidden_size;
  return {
      .router = {"router.proj", config.num_experts, hidden},
      .experts = config.num_experts,
      .chosen = config.chosen_experts,
      .normalize = true,
      .module = "experts",
      .gate = "gate_up_proj",
      .up = "",
      .down = "down_proj",
      .inner = config.expert_size,
      .files = ExpertFiles::stacked,
      .shared = SharedExpert{.mlp = mlp_of(config, layer),
                             .norm_before = rms_norm(config, "pre_feedforward_layernorm"),
                             .norm_after = rms_norm(config, "post_feedforward_layernorm_1")},
      .activation = Activation::gelu_tanh,
      .router_input =
          RouterInput{.weight = "router.scale",
                      .epsilon = config.norm_epsilon,
                      .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(hidden)))},
      .norm_before = rms_norm(config, "pre_feedforward_layernorm_2"),
      .norm_after = rms_norm(config, "post_feedforward_layernorm_2"),
      .expert_scales = "router.per_expert_scale"};
}

Branch feedforward_of(const ModelConfig& config, int64_t layer) {
  const Norm after = rms_norm(config, "post_feedforward_layernorm");
  if (config.num_experts > 0)
    return {.norm_before = {}, .block = experts_of(config, layer), .norm_after = after};
  return {.norm_before = rms_norm(config, "pre_feedforward_layernorm"),
          .block = mlp_of(config, layer),
          .norm_after = after};
}

Layer layer_of(const ModelConfig& config, int64_t index) {
  Layer layer{.branches = {{.norm_before = rms_norm(config, "input_layernorm"),
                            .block = attention_of(config, index),
                            .norm_after = rms_norm(config, "post_attention_layernorm")},
                           feedforward_of(config, index)},
              .factor = "layer_scalar"};
  const int64_t width = config.layer_input_size;
  const int64_t hidden = config.hidden_size;
  if (width > 0)
    layer.branches.push_back(
        {.norm_before = {},
         .block = LayerInputBlock{.gate = {"per_layer_input_gate", width, hidden},
                                  .down = {"per_layer_projection", hidden, width}},
         .norm_after = rms_norm(config, "post_per_layer_input_norm")});
  return layer;
}

LayerInputs layer_inputs(const ModelConfig& config) {
  const int64_t width = config.layer_input_size;
  const auto root = [](int64_t size) { return std::sqrt(static_cast<double>(size)); };
  return {.table = "model.embed_tokens_per_layer",
          .vocab_size = config.layer_input_vocab,
          .width = width,
          .projection = {.module = "model.per_layer_model_projection",
                         .out = config.num_layers * width,
                         .in = config.hidden_size,
                         .in_16_bits = true},
          .norm = rms_norm(config, "model.per_layer_projection_norm", width),
          .table_scale = static_cast<float>(root(width)),
          .projection_scale = static_cast<float>(1.0 / root(config.hidden_size)),
          .sum_scale = static_cast<float>(1.0 / std::sqrt(2.0))};
}

Stack stack(const ModelConfig& config) {
  Stack stack = decoder(config, [&](int64_t layer) { return layer_of(config, layer); });
  stack.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  stack.logit_softcap = config.logit_softcap;
  stack.rotary = {config.full_head_dim, config.rope};
  stack.local_rotary = {config.head_dim, *config.local_rope};
  if (config.layer_input_size > 0) stack.layer_inputs = layer_inputs(config);
  // Published files hold them for layers that do not read them.
  if (config.sharing_layers > 0)
    stack.ignored = {"self_attn.k_proj.weight", "self_attn.v_proj.weight",
                     "self_attn.k_norm.weight"};
  return stack;
}

// The keys of per_layer_config by layer: transformers writes "05" where there are more than ten.
std::map<int64_t, std::string> overridden_layers(const JsonObject& json, int64_t num_layers) {
  std::map<int64_t, std::string> keys;
  for (const auto& [key, sizes] : json.object(kOverrides).value().items()) {
    int64_t layer = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), layer);
    if (error != std::errc() || end != key.data() + key.size() || layer < 0 ||
        layer >= num_layers || !keys.emplace(layer, key).second)
      json.fail(kOverrides, fmt::format("has the key \"{}\", which is the number of no layer, or "
                                        "of one that another key names",
                                        key));
  }
  return keys;
}

// Heads of layers without a window, which transformers 5.23 writes layer by layer.
void parse_overrides(const JsonObject& json, ModelConfig& config) {
  const JsonObject layers = json.object(kOverrides);
  const std::map<int64_t, std::string> keys = overridden_layers(json, config.num_layers);
  bool is_first = true;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    int64_t head_dim = config.head_dim;
    int64_t kv_heads = config.num_kv_heads;
    if (const auto key = keys.find(layer); key != keys.end()) {
      const JsonObject sizes = layers.object(key->second);
      for (const auto& [name, value] : sizes.value().items())
        if (name != "head_dim" && name != "num_key_value_heads")
          sizes.fail(name, "differs by layer; only head_dim and num_key_value_heads may");
      head_dim = positive_or(sizes, "head_dim", head_dim, kMaxHeads);
      kv_heads = positive_or(sizes, "num_key_value_heads", kv_heads, kMaxHeads);
    }
    if (config.window_of(layer) > 0) {
      if (head_dim != config.head_dim || kv_heads != config.num_kv_heads)
        json.fail(kOverrides, fmt::format("gives layer {}, which has a window, other heads than "
                                          "the file gives all layers",
                                          layer));
      continue;
    }
    if (is_first) {
      config.full_head_dim = head_dim;
      config.full_kv_heads = kv_heads;
      is_first = false;
    }
    if (head_dim != config.full_head_dim || kv_heads != config.full_kv_heads)
      json.fail(kOverrides, "gives layers without a window heads that differ from each other");
  }
}

void parse_full_heads(const JsonObject& json, ModelConfig& config) {
  config.keys_as_values = json.boolean_or("attention_k_eq_v", false);
  config.full_head_dim = positive_or(json, "global_head_dim", kFullHeadDim, kMaxHeads);
  config.full_kv_heads = config.num_kv_heads;
  if (config.keys_as_values)
    config.full_kv_heads =
        positive_or(json, "num_global_key_value_heads", config.num_kv_heads, kMaxHeads);
  const bool is_by_layer = json.has(kOverrides);
  if (is_by_layer) parse_overrides(json, config);
  if (config.full_head_dim % 2 != 0)
    json.fail(is_by_layer ? kOverrides : "global_head_dim",
              fmt::format("leaves heads of {} elements; rotary embeddings need an even number",
                          config.full_head_dim));
  if (config.num_heads % config.full_kv_heads != 0)
    json.fail(is_by_layer ? kOverrides : "num_global_key_value_heads",
              fmt::format("leaves {} heads of keys, which {} attention heads cannot share",
                          config.full_kv_heads, config.num_heads));
  if (!config.keys_as_values && config.full_kv_heads != config.num_kv_heads)
    json.fail(kOverrides,
              "gives layers without a window another number of heads of keys, which "
              "is built with attention_k_eq_v alone");
}

void parse_sharing(const JsonObject& json, ModelConfig& config) {
  constexpr const char* kKey = "num_kv_shared_layers";
  config.sharing_layers = json.integer_or(kKey, 0);
  config.wide_sharing_mlps = json.boolean_or("use_double_wide_mlp", false);
  if (config.sharing_layers < 0 || config.sharing_layers > config.num_layers)
    json.fail(kKey, fmt::format("is {}; expected 0 to the number of layers, {}",
                                config.sharing_layers, config.num_layers));
  for (int64_t layer = first_sharing(config); layer < config.num_layers; ++layer)
    if (keys_layer(config, layer) < 0)
      json.fail(kKey, fmt::format("is {}, so layer {} would read the keys of an earlier layer of "
                                  "its type, and there is none",
                                  config.sharing_layers, layer));
}

void parse_layer_inputs(const JsonObject& json, int64_t absent, ModelConfig& config) {
  constexpr const char* kKey = "hidden_size_per_layer_input";
  const int64_t size = json.integer_or(kKey, absent);
  if (size == 0) return;
  if (absent == 0) json.fail(kKey, "is not 0; layers of this family have no input of their own");
  config.layer_input_size = positive_or(json, kKey, absent, kMaxHidden);
  config.layer_input_vocab =
      positive_or(json, "vocab_size_per_layer_input", kTableRows, kMaxVocabulary);
  if (config.layer_input_vocab < config.vocab_size)
    json.fail("vocab_size_per_layer_input",
              fmt::format("is {}, fewer than the {} tokens of vocab_size", config.layer_input_vocab,
                          config.vocab_size));
}

// transformers has no loss that balances the experts of this family.
void parse_experts(const JsonObject& json, ModelConfig& config) {
  if (!json.boolean_or("enable_moe_block", false)) return;
  config.num_experts = positive(json, "num_experts", kMaxExperts);
  config.chosen_experts = positive(json, "top_k_experts", kMaxExperts);
  config.expert_size = positive(json, "moe_intermediate_size", kMaxIntermediate);
  if (config.chosen_experts > config.num_experts)
    json.fail("top_k_experts", fmt::format("is {}; the model has {} experts", config.chosen_experts,
                                           config.num_experts));
}

void refuse_others(const JsonObject& json) {
  constexpr const char* kKey = "use_bidirectional_attention";
  // "vision" lets the tokens of one image see each other, and no text.
  if (json.has(kKey) && json.text(kKey) != "vision")
    json.fail(kKey, fmt::format("is \"{}\"; snug has causal attention only", json.text(kKey)));
}

// In what the two families differ where a key is absent.
struct Absent {
  int64_t max_position = 0;
  int64_t window = 0;
  int64_t layer_input_size = 0;
};

ModelConfig parse_text(const JsonObject& json, const Absent& absent) {
  refuse_others(json);
  ModelConfig config = parse_shape(json, {.heads = 8,
                                          .vocab_size = kTableRows,
                                          .kv_heads = 4,
                                          .head_dim = 256,
                                          .max_position = absent.max_position,
                                          .tied_embeddings = true,
                                          .activation_key = "hidden_activation",
                                          .activations = {"gelu_pytorch_tanh"},
                                          .has_experts = true});
  const RopeConfig full{
      .theta = kFullTheta, .scaling = RopeScaling::proportional, .rotated_part = kRotatedPart};
  auto [of_full, of_window] = parse_typed_ropes(json, {full, {.theta = kWindowTheta}});
  config.rope = std::move(of_full);
  config.local_rope = std::move(of_window);
  config.attention_bias = json.boolean_or("attention_bias", false);
  config.attention_scale = 1.0;
  config.logit_softcap = parse_softcap(json, "final_logit_softcapping", 0.0);
  const int64_t window = parse_window(json, absent.window);
  if (window == 0) json.fail("sliding_window", "is null; this family has layers with a window");
  set_window_pattern(config, window, kPattern);
  if (json.has("layer_types")) config.windows = parse_layer_types(json, config.num_layers, window);
  config.windows.back() = 0;  // as in transformers, whatever layer_types says
  parse_full_heads(json, config);
  parse_sharing(json, config);
  parse_layer_inputs(json, absent.layer_input_size, config);
  parse_experts(json, config);
  return config;
}

ModelConfig parse(const JsonObject& json) {
  return parse_text(json, {.max_position = 131072, .window = 512, .layer_input_size = 256});
}

ModelConfig parse_unified(const JsonObject& json) {
  if (json.boolean_or("enable_moe_block", false))
    json.fail("enable_moe_block", "is true; models of this family have no experts");
  return parse_text(json, {.max_position = 262144, .window = 1024});
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["attention_bias"] = config.attention_bias;
  json["hidden_act"] = json["hidden_activation"] = "gelu_pytorch_tanh";
  json["final_logit_softcapping"] = softcap_or_null(config.logit_softcap);
  describe_window(config, json);
  // A window that no layer has is not kept: transformers wants a number, and has one of its own.
  if (json["sliding_window"].is_null()) json.erase("sliding_window");
  describe_layer_types(config, json);
  describe_typed_ropes({config.rope, *config.local_rope}, json);
  json["global_head_dim"] = config.full_head_dim;
  json["attention_k_eq_v"] = config.keys_as_values;
  json["num_global_key_value_heads"] =
      config.keys_as_values ? nlohmann::json(config.full_kv_heads) : nlohmann::json();
  json["num_kv_shared_layers"] = config.sharing_layers;
  json["use_double_wide_mlp"] = config.wide_sharing_mlps;
  json["hidden_size_per_layer_input"] = config.layer_input_size;
  if (config.layer_input_size > 0) json["vocab_size_per_layer_input"] = config.layer_input_vocab;
  json["enable_moe_block"] = config.num_experts > 0;
  if (config.num_experts == 0) return;
  json["num_experts"] = config.num_experts;
  json["top_k_experts"] = config.chosen_experts;
  json["moe_intermediate_size"] = config.expert_size;
}

void published(ModelConfig& config, int64_t window, int64_t pattern) {
  config.rope.scaling = RopeScaling::proportional;
  config.rope.rotated_part = kRotatedPart;
  config.local_rope.emplace().theta = kWindowTheta;
  config.attention_scale = 1.0;
  config.logit_softcap = 30.0F;
  set_window_pattern(config, window, pattern);
  config.full_head_dim = kFullHeadDim;
  config.full_kv_heads = config.num_kv_heads;
}

void large(ModelConfig& config, int64_t full_kv_heads) {
  published(config, 1024, kPattern);
  config.keys_as_values = true;
  config.full_kv_heads = full_kv_heads;
}
void dense_12b(ModelConfig& config) { large(config, 1); }
void dense_31b(ModelConfig& config) { large(config, 4); }
void mixture_26b(ModelConfig& config) {
  large(config, 2);
  config.num_experts = 128;
  config.chosen_experts = 8;
  config.expert_size = 704;
}

void small(ModelConfig& config, int64_t pattern, int64_t sharing_layers) {
  published(config, 512, pattern);
  config.sharing_layers = sharing_layers;
  config.layer_input_size = 256;
  config.layer_input_vocab = kTableRows;
}
void effective_2b(ModelConfig& config) {
  small(config, 5, 20);
  config.wide_sharing_mlps = true;
}
void effective_4b(ModelConfig& config) { small(config, kPattern, 18); }

// The text part alone, without images and sound.
constexpr std::array kPresets{
    Preset{"gemma-4-31b", 5376, 60, 32, 16, 256, 21504, 262144, 262144, 1e-6F, kFullTheta, true,
           dense_31b},
    Preset{"gemma-4-e2b", 1536, 35, 8, 1, 256, 6144, 262144, 131072, 1e-6F, kFullTheta, true,
           effective_2b},
    Preset{"gemma-4-e4b", 2560, 42, 8, 2, 256, 10240, 262144, 131072, 1e-6F, kFullTheta, true,
           effective_4b},
    Preset{"gemma-4-26b-a4b", 2816, 30, 16, 8, 256, 2112, 262144, 262144, 1e-6F, kFullTheta, true,
           mixture_26b},
};
constexpr std::array kUnifiedPresets{
    Preset{"gemma-4-12b", 3840, 48, 16, 8, 256, 15360, 262144, 262144, 1e-6F, kFullTheta, true,
           dense_12b},
};

}  // namespace

const Family kGemma4{"gemma4_text",
                     "Gemma4ForCausalLM",
                     stack,
                     parse,
                     describe,
                     kPresets,
                     "Gemma 4 E2B, E4B, 31B and 26B-A4B",
                     FamilyForm::decoder,
                     {.linear_routers = true}};
const Family kGemma4Unified{"gemma4_unified_text",
                            "Gemma4UnifiedForCausalLM",
                            stack,
                            parse_unified,
                            describe,
                            kUnifiedPresets,
                            "Gemma 4 12B"};

}  // namespace snug::models
