#include "models/families/t5_blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/config/config_keys.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr SizeKeys kKeys{"d_model", "num_layers", "num_heads", "d_ff", "n_positions"};
constexpr std::string_view kGated = "gated-gelu";
constexpr std::string_view kPlain = "relu";
constexpr int64_t kBuckets = 32;
constexpr int64_t kMaxDistance = 128;
// Larger tables would not fit into the fast memory in which the kernels keep them.
constexpr int64_t kMaxBuckets = 256;
constexpr int64_t kMaxReach = 2048;

// layer.INDEX.NAME.{q,k,v,o}, with scores that are not scaled.
AttentionBlock t5_attention(const ModelConfig& config, const std::string& module) {
  AttentionBlock block = attention(config, 0);
  const std::vector<const char*> names{"q", "k", "v"};
  for (size_t i = 0; i < names.size(); ++i)
    block.query_key_value.parts[i].module = module + "." + names[i];
  block.output.module = module + ".o";
  block.scale = 1.0F;
  return block;
}

// The self-attention of the encoder or the decoder, whose layers' names begin with `prefix`. The
// table of relative positions is a module of the first layer.
AttentionBlock self_attention(const ModelConfig& config, const std::string& prefix, bool causal) {
  const std::string module = "layer.0.SelfAttention";
  AttentionBlock block = t5_attention(config, module);
  block.causal = causal;
  block.relative_bias = {prefix + ".0." + module + ".relative_attention_bias",
                         config.relative_buckets, config.relative_distance};
  return block;
}

AttentionBlock cross_attention(const ModelConfig& config) {
  AttentionBlock block = t5_attention(config, "layer.1.EncDecAttention");
  block.causal = false;
  block.reads_encoder = true;
  return block;
}

Block t5_mlp(const ModelConfig& config, const std::string& layer) {
  const std::string module = layer + ".DenseReluDense.";
  if (!config.gated_mlp) {
    Mlp mlp = plain_mlp(config, {"wi", "wo"}, Activation::relu, false);
    mlp.up.module = module + mlp.up.module;
    mlp.down.module = module + mlp.down.module;
    mlp.down.in_16_bits = true;
    return mlp;
  }
  GatedMlp mlp = models::gated_mlp(config);
  mlp.gate_up.parts[0].module = module + "wi_0";
  mlp.gate_up.parts[1].module = module + "wi_1";
  mlp.activation = Activation::gelu_tanh;
  mlp.down.module = module + "wo";
  mlp.down.in_16_bits = true;
  return mlp;
}

// A branch with a norm before the block; `part` is the branch's module within its layer.
Branch branch(const ModelConfig& config, const std::string& part, Block block) {
  return {rms_norm(config, part + ".layer_norm"), std::move(block), {}};
}

Layer encoder_layer(const ModelConfig& config, const std::string& prefix) {
  return {{branch(config, "layer.0", self_attention(config, prefix, false)),
           branch(config, "layer.1", t5_mlp(config, "layer.1"))}};
}

Layer decoder_layer(const ModelConfig& config, const std::string& prefix) {
  return {{branch(config, "layer.0", self_attention(config, prefix, true)),
           branch(config, "layer.1", cross_attention(config)),
           branch(config, "layer.2", t5_mlp(config, "layer.2"))}};
}

// Whether the mlp has a gate, by the rules of transformers: feed_forward_proj names an activation,
// after "gated-" if there is a gate; is_gated_act and dense_act_fn, which saved files also have,
// take precedence. Throws UserError for an activation that is not built.
bool parse_gated(const JsonObject& json, const std::string& absent) {
  constexpr std::string_view kGate = "gated-";
  const std::string form = json.text_or("feed_forward_proj", absent);
  const bool says_gated = form.starts_with(kGate);
  const bool gated = json.boolean_or("is_gated_act", says_gated);
  std::string activation = says_gated ? form.substr(kGate.size()) : form;
  if (form == kGated) activation = "gelu_new";
  const bool is_given = json.has("dense_act_fn");
  if (is_given) activation = json.text("dense_act_fn");
  const std::vector<std::string_view> built =
      gated ? std::vector<std::string_view>{"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}
            : std::vector<std::string_view>{"relu"};
  if (std::ranges::find(built, activation) == built.end())
    json.fail(is_given ? "dense_act_fn" : "feed_forward_proj",
              fmt::format("asks for \"{}\" in an mlp {} a gate (feed_forward_proj is \"{}\"); snug "
                          "has {} there",
                          activation, gated ? "with" : "without", form, fmt::join(built, ", ")));
  return gated;
}

// transformers also accepts the names of these keys in other families, and prefers them where a
// file has both.
SizeKeys keys_of(const JsonObject& json) {
  SizeKeys keys = kKeys;
  keys.hidden = key_present(json, {"hidden_size", keys.hidden});
  keys.layers = key_present(json, {"num_hidden_layers", keys.layers});
  keys.heads = key_present(json, {"num_attention_heads", keys.heads});
  return keys;
}

// A token id of at least 0, with a default for files that do not name it.
int64_t token_or(const JsonObject& json, std::string_view key, int64_t fallback, int64_t tokens) {
  const int64_t id = json.integer_or(key, fallback);
  if (id < 0 || id >= tokens)
    json.fail(key, fmt::format("is {}, which is no token of a vocabulary of {}", id, tokens));
  return id;
}

}  // namespace

Stack t5_stack(const ModelConfig& config) {
  Stack stack = decoder_without_layers(config);
  stack.embedding = "shared";
  stack.prefix = "decoder.block";
  const int64_t decoder_layers = config.num_layers - config.encoder_layers;
  stack.layers.assign(static_cast<size_t>(decoder_layers), decoder_layer(config, stack.prefix));
  stack.final_norm = rms_norm(config, "decoder.final_layer_norm");
  stack.encoder = Encoder{.hidden_size = config.hidden_size,
                          .embedding = {},
                          .prefix = "encoder.block",
                          .layers = {},
                          .final_norm = rms_norm(config, "encoder.final_layer_norm")};
  stack.encoder->layers.assign(static_cast<size_t>(config.encoder_layers),
                               encoder_layer(config, stack.encoder->prefix));
  if (config.scaled_head)
    stack.head_scale = 1.0 / std::sqrt(static_cast<double>(config.hidden_size));
  stack.embedding_copies = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
  stack.ignored = {"EncDecAttention.relative_attention_bias.weight"};
  return stack;
}

ModelConfig parse_t5_shape(const JsonObject& json, const T5Defaults& defaults) {
  ModelConfig config = parse_shape(json, {.keys = keys_of(json),
                                          .head_dim = positive_or(json, "d_kv", 64, kMaxHeads),
                                          .max_position = kMaxPositions,
                                          .tied_embeddings = defaults.tied_embeddings,
                                          .positions = Positions::relative,
                                          .norm_epsilon_key = "layer_norm_epsilon",
                                          .activations = {},
                                          .dropout_keys = {"dropout_rate"},
                                          .dropout = 0.1});
  if (!json.boolean_or("is_encoder_decoder", true))
    json.fail("is_encoder_decoder", "is false; snug has this family with its decoder only");
  // n_positions is only the length that the model was trained with, not a limit.
  config.max_position = kMaxPositions;
  config.encoder_layers = config.num_layers;
  const int64_t own = positive_or(json, kKeys.layers, config.num_layers, kMaxLayers);
  config.num_layers += positive_or(json, "num_decoder_layers", own, kMaxLayers);
  config.gated_mlp = parse_gated(json, std::string(defaults.feed_forward));
  config.relative_buckets =
      positive_or(json, "relative_attention_num_buckets", kBuckets, kMaxBuckets);
  if (config.relative_buckets % 4 != 0)
    json.fail("relative_attention_num_buckets", "is no multiple of 4");
  config.relative_distance =
      positive_or(json, "relative_attention_max_distance", kMaxDistance, kMaxReach);
  if (config.relative_distance <= config.relative_buckets / 2)
    json.fail("relative_attention_max_distance",
              "is not above half of relative_attention_num_buckets");
  config.padding_id = token_or(json, "pad_token_id", 0, config.vocab_size);
  config.decoder_start_id =
      token_or(json, "decoder_start_token_id", config.padding_id, config.vocab_size);
  return config;
}

void describe_t5_shape(const ModelConfig& config, nlohmann::json& json) {
  rename_key(json, "hidden_size", kKeys.hidden.data());
  rename_key(json, "num_attention_heads", kKeys.heads.data());
  rename_key(json, "intermediate_size", kKeys.intermediate.data());
  rename_key(json, "head_dim", "d_kv");
  rename_key(json, "rms_norm_eps", "layer_norm_epsilon");
  for (const char* key : {"hidden_act", "num_key_value_heads", "num_hidden_layers",
                          "attention_dropout", "max_position_embeddings", "initializer_range"})
    json.erase(key);
  json["num_layers"] = config.encoder_layers;
  json["num_decoder_layers"] = config.num_layers - config.encoder_layers;
  json["feed_forward_proj"] = config.gated_mlp ? kGated : kPlain;
  json["relative_attention_num_buckets"] = config.relative_buckets;
  json["relative_attention_max_distance"] = config.relative_distance;
  json["dropout_rate"] = config.dropout;
  json["is_encoder_decoder"] = true;
  json["decoder_start_token_id"] = config.decoder_start_id;
  json["pad_token_id"] = config.padding_id;
  json["eos_token_id"] = 1;
}

void set_published_t5(ModelConfig& config, bool gated) {
  config.positions = Positions::relative;
  config.encoder_layers = config.num_layers;
  config.num_layers *= 2;
  config.gated_mlp = gated;
  config.relative_buckets = kBuckets;
  config.relative_distance = kMaxDistance;
}

}  // namespace snug::models
