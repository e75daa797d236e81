// The codet5p family (CodeT5+, Wang et al. 2023) of 2B parameters: an encoder and a decoder that
// are CodeGen models of different sizes, each with an embedding table of its own. In each layer,
// attention and a plain mlp run in parallel after one norm. Only the decoder's last layer attends
// to the encoder, through a projection to its own width. The decoder also reads the prompt before
// the answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/families/llama_blocks.h"

namespace snug::models {
namespace {

using base::JsonObject;

constexpr SizeKeys kKeys{"n_embd", "n_layer", "n_head", "n_inner", "n_positions"};
// The rows of fused projections are divided into this many blocks, as the model was trained on as
// many devices.
constexpr int64_t kBlocks = 4;
constexpr int64_t kEos = 50256;

// The encoder's config as that of a model of its own.
ModelConfig encoder_config(const ModelConfig& config) {
  ModelConfig encoder = config;
  const EncoderShape& shape = *config.encoder;
  encoder.hidden_size = shape.hidden_size;
  encoder.num_heads = encoder.num_kv_heads = shape.num_heads;
  encoder.head_dim = shape.head_dim;
  encoder.intermediate_size = shape.intermediate_size;
  encoder.partial_rotary_factor = shape.partial_rotary_factor;
  return encoder;
}

AttentionBlock codegen_attention(const ModelConfig& config, const std::string& module) {
  AttentionBlock block = attention(config, 0);
  block.query_key_value.fused = module + ".qkv_proj";
  block.query_key_value.order = RowOrder::by_block;
  block.query_key_value.blocks = kBlocks;
  block.output.module = module + ".out_proj";
  return block;
}

Branch branch(const ModelConfig& config, Block block) {
  return {layer_norm(config, "ln_1"), std::move(block), {}};
}

Block mlp(const ModelConfig& config) {
  return plain_mlp(config, {"mlp.fc_in", "mlp.fc_out"}, Activation::gelu_tanh, true);
}

Layer encoder_layer(const ModelConfig& config) {
  AttentionBlock all = codegen_attention(config, "attn");
  all.causal = false;
  all.local_rotary = true;
  return {.branches = {branch(config, std::move(all)), branch(config, mlp(config))},
          .parallel = true};
}

AttentionBlock cross_attention(const ModelConfig& config) {
  AttentionBlock cross = codegen_attention(config, "crossattention");
  cross.query_key_value.parts.front().module = "crossattention.q_attn";
  cross.query_key_value.queries_apart = true;
  cross.causal = false;
  cross.reads_encoder = true;
  if (config.encoder->hidden_size != config.hidden_size)
    cross.encoder_projection =
        Linear{"enc_to_dec_proj", config.hidden_size, config.encoder->hidden_size, true};
  return cross;
}

Layer decoder_layer(const ModelConfig& config, bool is_last) {
  Layer layer{.branches = {branch(config, codegen_attention(config, "attn"))}, .parallel = true};
  if (is_last) layer.branches.push_back(branch(config, cross_attention(config)));
  layer.branches.push_back(branch(config, mlp(config)));
  return layer;
}

Stack stack(const ModelConfig& config) {
  const ModelConfig small = encoder_config(config);
  Stack stack = decoder_without_layers(config);
  stack.embedding = "decoder.transformer.wte";
  stack.prefix = "decoder.transformer.h";
  const int64_t decoder_layers = config.num_layers - config.encoder_layers;
  for (int64_t index = 0; index < decoder_layers; ++index)
    stack.layers.push_back(decoder_layer(config, index + 1 == decoder_layers));
  stack.final_norm = layer_norm(config, "decoder.transformer.ln_f");
  stack.encoder = Encoder{.hidden_size = small.hidden_size,
                          .embedding = "encoder.wte",
                          .prefix = "encoder.h",
                          .layers = {},
                          .final_norm = layer_norm(small, "encoder.ln_f")};
  stack.encoder->layers.assign(static_cast<size_t>(config.encoder_layers), encoder_layer(small));
  stack.head = "decoder.lm_head";
  stack.head_bias = true;
  stack.rotary.interleaved = true;
  stack.local_rotary = Rotary{small.rotary_width(), config.rope, true};
  stack.ignored = {"attn.causal_mask", "crossattention.causal_mask"};
  return stack;
}

// Parses the config of the encoder or the decoder, each of which is a model of its own in
// config.json.
ModelConfig parse_part(const JsonObject& json) {
  ModelConfig config =
      parse_shape(json, {.keys = kKeys,
                         .intermediate_factor = 4,
                         .max_position = 2048,
                         .norm_epsilon = 1e-5,
                         .norm_epsilon_key = "layer_norm_epsilon",
                         .activation_key = "activation_function",
                         .activations = {"gelu_new", "gelu_pytorch_tanh"},
                         .dropout_keys = {"resid_pdrop", "embd_pdrop", "attn_pdrop"}});
  require_plain_heads(json, config);
  if (config.num_heads % kBlocks != 0)
    json.fail(kKeys.heads, fmt::format("is {}; heads of this family lie in {} blocks of as many",
                                       config.num_heads, kBlocks));
  const int64_t rotated = positive_or(json, "rotary_dim", 64, kMaxHeads);
  if (rotated % 2 != 0 || rotated > config.head_dim)
    json.fail("rotary_dim", fmt::format("is {}; expected an even number of the {} elements of a "
                                        "head",
                                        rotated, config.head_dim));
  config.partial_rotary_factor =
      static_cast<double>(rotated) / static_cast<double>(config.head_dim);
  return config;
}

int64_t token_of(const JsonObject& json, const ModelConfig& config) {
  const int64_t token = json.integer_or("eos_token_id", kEos);
  if (token < 0 || token >= config.vocab_size)
    json.fail("eos_token_id",
              fmt::format("is {}, but the vocabulary has {} ids", token, config.vocab_size));
  return token;
}

ModelConfig parse(const JsonObject& json) {
  const JsonObject part = json.object("decoder");
  const JsonObject encoder_part = json.object("encoder");
  ModelConfig config = parse_part(part);
  const ModelConfig encoder = parse_part(encoder_part);
  if (encoder.vocab_size != config.vocab_size)
    encoder_part.fail("vocab_size", "is not the decoder's; both read one tokenizer's ids");
  if (encoder.norm_epsilon != config.norm_epsilon)
    encoder_part.fail("layer_norm_epsilon", "is not the decoder's, as this family has it");
  if (config.tied_embeddings)
    part.fail("tie_word_embeddings", "is true; heads of this family have weights of their own");
  config.model_type = json.text("model_type");
  config.encoder = EncoderShape{.hidden_size = encoder.hidden_size,
                                .num_heads = encoder.num_heads,
                                .head_dim = encoder.head_dim,
                                .intermediate_size = encoder.intermediate_size,
                                .partial_rotary_factor = encoder.partial_rotary_factor};
  config.encoder_layers = encoder.num_layers;
  config.num_layers += encoder.num_layers;
  config.dropout = std::max(config.dropout, encoder.dropout);
  config.decoder_start_id = token_of(part, config);
  config.padding_id = config.decoder_start_id;
  config.repeats_prompt = true;
  return config;
}

nlohmann::json describe_part(const ModelConfig& config, int64_t layers, bool is_decoder) {
  nlohmann::json json{{"model_type", "codet5p_module"},
                      {"vocab_size", config.vocab_size},
                      {"n_embd", config.hidden_size},
                      {"n_layer", layers},
                      {"n_head", config.num_heads},
                      {"n_inner", config.intermediate_size},
                      {"n_positions", config.max_position},
                      {"n_ctx", config.max_position},
                      {"rotary_dim", config.rotary_width()},
                      {"activation_function", "gelu_new"},
                      {"layer_norm_epsilon", as_written(config.norm_epsilon)},
                      {"initializer_range", as_written(config.initializer_range)},
                      {"tie_word_embeddings", false},
                      {"is_decoder", is_decoder},
                      {"add_cross_attention", is_decoder},
                      {"bos_token_id", 1},
                      {"eos_token_id", config.decoder_start_id},
                      {"pad_token_id", config.padding_id}};
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) json[key] = config.dropout;
  if (is_decoder) json["decoder_start_token_id"] = config.decoder_start_id;
  return json;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json = {{"architectures", json.at("architectures")},
          {"model_type", json.at("model_type")},
          {"is_encoder_decoder", true},
          {"decoder_start_token_id", config.decoder_start_id},
          {"pad_token_id", config.padding_id},
          {"encoder", describe_part(encoder_config(config), config.encoder_layers, false)},
          {"decoder", describe_part(config, config.num_layers - config.encoder_layers, true)}};
}

void published(ModelConfig& config) {
  config.encoder = EncoderShape{.hidden_size = 1024,
                                .num_heads = 16,
                                .head_dim = 64,
                                .intermediate_size = 4096,
                                .partial_rotary_factor = 0.5};
  config.encoder_layers = 20;
  config.num_layers += config.encoder_layers;
  config.partial_rotary_factor = 0.8;
  config.decoder_start_id = config.padding_id = kEos;
  config.repeats_prompt = true;
}

constexpr std::array kPresets{
    Preset{"codet5p-2b", 2560, 32, 32, 32, 80, 10240, 51200, 2048, 1e-5F, 1e4, false, published},
};

}  // namespace

const Family kCodeT5p{"codet5p",    "CodeT5pEncoderDecoderModel", stack, parse, describe, kPresets,
                      "CodeT5+ 2B", FamilyForm::encoder_decoder};

}  // namespace snug::models
