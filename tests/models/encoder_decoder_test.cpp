// Encoder-decoders: their config.json in both of transformers' forms, the names and the order of
// their weights, and what of them is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "models/config/config.h"
#include "models/families/families.h"
#include "models/forward/forward.h"
#include "models/stored/weight_patterns.h"
#include "models/weights.h"
#include "program/text/text.h"

namespace snug::models {
namespace {

using testing::contains;

ModelConfig golden(const std::string& name, const char* file = "config.json") {
  std::ifstream stream(fmt::format("tests/goldens/{}/model/{}", name, file));
  std::stringstream text;
  text << stream.rdbuf();
  return parse_config(text.str(), file);
}

std::string small(const std::string& more) {
  return fmt::format(
      R"({{"model_type": "t5", "d_model": 10, "d_kv": 3, "d_ff": 14, "num_heads": 3,
          "num_layers": 2, "vocab_size": 29{}}})",
      more);
}

std::string error_of(const std::string& text) {
  try {
    parse_config(text, "config.json");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string network_of(const ModelConfig& config) {
  return program::to_text(
      forward(stack_of(config),
              {.program = program::ProgramName::micro_first, .tokens = {3, 5}, .segments = 1}));
}

std::vector<std::string> names_of(const ModelConfig& config) {
  std::vector<std::string> names;
  for (const Weight& weight : weights_of(config)) names.push_back(weight.name);
  return names;
}

TEST(EncoderDecoder, ConfigsOfBothVersionsAndOurOwnAreTheSameNetwork) {
  for (const char* name : {"t5", "t5_gated", "mt5"}) {
    ModelConfig five = golden(name);
    const ModelConfig four = golden(name, "config_v4.json");
    // transformers 5 calls each head tied; that the files hold another one is seen by the folder.
    const ModelConfig folder = find_model(fmt::format("tests/goldens/{}/model", name)).config;
    EXPECT_EQ(folder.tied_embeddings, four.tied_embeddings) << name;
    five.tied_embeddings = four.tied_embeddings;
    EXPECT_EQ(network_of(five), network_of(four)) << name;
    const ModelConfig saved = parse_config(describe(four).dump(), "saved");
    EXPECT_EQ(network_of(saved), network_of(four)) << name;
    EXPECT_EQ(saved.decoder_start_id, four.decoder_start_id);
  }
}

TEST(EncoderDecoder, TheHeadIsScaledWhereItIsTheEmbedding) {
  const auto scale = [](const std::string& more) {
    return stack_of(parse_config(small(more), "config.json")).head_scale;
  };
  const double root = 1.0 / std::sqrt(10.0);
  EXPECT_DOUBLE_EQ(scale(""), root);
  EXPECT_DOUBLE_EQ(scale(R"(, "tie_word_embeddings": false)"), 1.0);
  EXPECT_DOUBLE_EQ(scale(R"(, "tie_word_embeddings": true, "scale_decoder_outputs": false)"), 1.0);
  EXPECT_DOUBLE_EQ(scale(R"(, "tie_word_embeddings": false, "scale_decoder_outputs": true)"), root);
}

TEST(EncoderDecoder, WeightsAreThoseOfTheFilesInTheOrderOfTheForwardPass) {
  const std::vector<std::string> names = names_of(golden("t5"));  // one layer, then two
  const std::set<std::string> once(names.begin(), names.end());
  EXPECT_EQ(once.size(), names.size());
  const auto place = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    EXPECT_NE(found, names.end()) << name;
    return found - names.begin();
  };
  const std::vector<std::string> in_order{
      "shared.weight",
      "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
      "encoder.block.0.layer.0.layer_norm.weight",
      "encoder.block.0.layer.1.DenseReluDense.wo.weight",
      "encoder.final_layer_norm.weight",
      "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
      "decoder.block.0.layer.1.EncDecAttention.q.weight",
      "decoder.block.1.layer.2.DenseReluDense.wi.weight",
      "decoder.final_layer_norm.weight"};
  for (size_t i = 1; i < in_order.size(); ++i)
    EXPECT_LT(place(in_order[i - 1]), place(in_order[i])) << in_order[i];
  EXPECT_EQ(names.back(), in_order.back());  // the head is the embedding
}

// Layers are numbered through; a table of positions belongs to none of those that share it.
TEST(EncoderDecoder, LayersOfBothStacksHaveOneCount) {
  for (const Weight& weight : weights_of(golden("t5"))) {
    const bool is_outside = contains(weight.name, "relative_attention_bias") ||
                            contains(weight.name, "final_layer_norm") ||
                            weight.name == "shared.weight";
    int32_t layer = -1;
    if (!is_outside && weight.name.starts_with("encoder.block.0.")) layer = 0;
    if (!is_outside && weight.name.starts_with("decoder.block.0.")) layer = 1;
    if (!is_outside && weight.name.starts_with("decoder.block.1.")) layer = 2;
    EXPECT_EQ(weight.layer, layer) << weight.name;
    // bitsandbytes keeps wo, embeddings and the head in 16 bits.
    const bool is_wo = weight.name.ends_with(".wo.weight");
    EXPECT_EQ(weight.is_linear(), layer >= 0 && weight.shape.rank() == 2) << weight.name;
    EXPECT_EQ(weight.is_quantised(), weight.is_linear() && !is_wo) << weight.name;
  }
}

TEST(EncoderDecoder, CopiesOfTheEmbeddingAndUnusedTablesAreSkipped) {
  const Stack stack = stack_of(golden("t5"));
  for (const char* name :
       {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight",
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"})
    EXPECT_TRUE(is_ignorable(name, stack)) << name;
  EXPECT_FALSE(is_ignorable("shared.weight", stack));
}

TEST(EncoderDecoder, PatternsSelectInBothStacks) {
  const ModelConfig config = golden("t5");
  EXPECT_EQ(weights_matching(config, "q").size(), 5U);  // three of self-attention, two across
  EXPECT_EQ(weights_matching(config, "decoder.block.1").size(), 13U);
  EXPECT_EQ(weights_matching(config, "EncDecAttention.v").size(), 2U);
  const std::string known = known_names(config, "q_proj");
  for (const char* part :
       {"encoder.block.0 to encoder.block.0", "decoder.block.0 to decoder.block.1",
        "layer.1.EncDecAttention.q", "shared"})
    EXPECT_TRUE(contains(known, part)) << known;
  EXPECT_EQ(query_value_modules(stack_of(config)), "q,v");
}

TEST(CodeT5p, ConfigsThatItWritesAreTheSameNetwork) {
  const ModelConfig config = golden("codet5p");
  EXPECT_EQ(network_of(parse_config(describe(config).dump(), "saved")), network_of(config));
  const ModelConfig large = *preset("codet5p-2b");
  const ModelConfig saved = parse_config(describe(large).dump(), "saved");
  EXPECT_EQ(network_of(with_layers(saved, 2)), network_of(with_layers(large, 2)));
  EXPECT_EQ(saved.decoder_start_id, 50256);
  EXPECT_TRUE(saved.repeats_prompt);
}

// The linear between the stacks is adapted and stored in 4 bits as others are, under its own name.
TEST(CodeT5p, TheLastLayerAloneReadsTheEncoder) {
  const ModelConfig config = golden("codet5p");
  const Stack stack = stack_of(config);
  EXPECT_EQ(weights_matching(config, "crossattention").size(), 3U);
  EXPECT_EQ(weights_matching(config, "decoder.transformer.h.1.crossattention.qkv_proj").size(), 1U);
  EXPECT_EQ(weights_matching(config, "qkv_proj").size(), 4U);
  for (const Weight& weight : weights_of(stack)) {
    if (weight.name != "enc_to_dec_proj.weight") continue;
    EXPECT_TRUE(weight.is_quantised());
    EXPECT_EQ(weight.shape, (program::Shape{24, 16}));
  }
  EXPECT_TRUE(contains(known_names(config, "q_proj"), "enc_to_dec_proj"));
  EXPECT_TRUE(is_ignorable("encoder.h.0.attn.causal_mask", stack));
  EXPECT_TRUE(is_ignorable("decoder.transformer.h.1.crossattention.causal_mask", stack));
  EXPECT_FALSE(is_ignorable("encoder.wte.weight", stack));
  EXPECT_EQ(query_value_modules(stack), "qkv_proj");
}

TEST(CodeT5p, RefusesWhatItDoesNotDo) {
  nlohmann::json config = describe(golden("codet5p"));
  const auto error_with = [&](const char* part, const char* key, const nlohmann::json& value) {
    nlohmann::json wrong = config;
    wrong[part][key] = value;
    return error_of(wrong.dump());
  };
  EXPECT_EQ(error_of(config.dump()), "no error");
  EXPECT_TRUE(contains(error_with("encoder", "vocab_size", 20), "vocab_size"));
  EXPECT_TRUE(contains(error_with("encoder", "n_head", 2), "n_head"));
  EXPECT_TRUE(contains(error_with("decoder", "rotary_dim", 3), "rotary_dim"));
  EXPECT_TRUE(contains(error_with("decoder", "rotary_dim", 8), "rotary_dim"));
  EXPECT_TRUE(contains(error_with("encoder", "layer_norm_epsilon", 1e-6), "layer_norm_epsilon"));
  EXPECT_TRUE(contains(error_with("decoder", "activation_function", "relu"), "activation"));
  EXPECT_TRUE(contains(error_with("decoder", "eos_token_id", 90), "eos_token_id"));
  EXPECT_TRUE(contains(error_with("decoder", "tie_word_embeddings", true), "tie_word_embeddings"));
}

TEST(EncoderDecoder, RefusesWhatItDoesNotDo) {
  struct Case {
    const char* more;
    const char* named;
  };
  for (const Case& wrong :
       {Case{R"(, "feed_forward_proj": "gated-silu")", "feed_forward_proj"},
        Case{R"(, "is_encoder_decoder": false)", "is_encoder_decoder"},
        Case{R"(, "relative_attention_num_buckets": 6)", "relative_attention_num_buckets"},
        Case{R"(, "relative_attention_max_distance": 16)", "relative_attention_max_distance"},
        Case{R"(, "num_decoder_layers": 0)", "num_decoder_layers"},
        Case{R"(, "decoder_start_token_id": -3)", "decoder_start_token_id"}}) {
    const std::string error = error_of(small(wrong.more));
    EXPECT_TRUE(contains(error, wrong.named)) << error;
  }
  EXPECT_EQ(error_of(small("")), "no error");
}

// Names of other families stand above T5's own, and null is false, as in transformers.
TEST(EncoderDecoder, KeysAreReadAsTransformersReadsThem) {
  const ModelConfig config = parse_config(small(R"(, "num_hidden_layers": 1)"), "config.json");
  EXPECT_EQ(config.encoder_layers, 1);
  EXPECT_EQ(config.num_layers, 3);
  EXPECT_FALSE(
      parse_config(small(R"(, "scale_decoder_outputs": null)"), "config.json").scaled_head);
  EXPECT_TRUE(parse_config(small(""), "config.json").scaled_head);
}

// transformers reads feed_forward_proj, and lets the two keys that follow from it stand above it.
TEST(EncoderDecoder, TheActivationIsTheOneThatTransformersTakes) {
  struct Case {
    const char* more;
    bool gated;
  };
  for (const Case& right :
       {Case{"", false}, Case{R"(, "feed_forward_proj": "gated-gelu")", true},
        Case{R"(, "feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu_new")", true},
        Case{R"(, "feed_forward_proj": "gated-gelu_new", "is_gated_act": true)", true},
        Case{R"(, "feed_forward_proj": "relu", "dense_act_fn": "relu")", false},
        Case{R"(, "feed_forward_proj": "gelu", "dense_act_fn": "relu")", false},
        Case{R"(, "feed_forward_proj": "gated-relu", "is_gated_act": false)", false},
        Case{R"(, "is_gated_act": true, "dense_act_fn": "gelu_pytorch_tanh")", true}}) {
    EXPECT_EQ(error_of(small(right.more)), "no error") << right.more;
    EXPECT_EQ(parse_config(small(right.more), "config.json").gated_mlp, right.gated) << right.more;
  }
  for (const char* more : {R"(, "dense_act_fn": "gelu_new")", R"(, "dense_act_fn": "silu")",
                           R"(, "feed_forward_proj": "gated-gelu", "dense_act_fn": "relu")",
                           R"(, "feed_forward_proj": "gated-gelu", "dense_act_fn": "gelu")",
                           R"(, "feed_forward_proj": "gated-gelu", "dense_act_fn": "silu")"})
    EXPECT_TRUE(contains(error_of(small(more)), "'dense_act_fn' asks for")) << more;
  for (const char* more : {R"(, "is_gated_act": true)", R"(, "feed_forward_proj": "gated-relu")",
                           R"(, "feed_forward_proj": "gelu")",
                           R"(, "feed_forward_proj": "gated-gelu", "is_gated_act": false)"})
    EXPECT_TRUE(contains(error_of(small(more)), "'feed_forward_proj' asks for")) << more;
}

TEST(EncoderDecoder, FewerLayersAreFewerInBothStacks) {
  const ModelConfig config = with_layers(*preset("t5-small"), 2);
  EXPECT_EQ(config.num_layers, 4);
  EXPECT_EQ(config.encoder_layers, 2);
  EXPECT_EQ(with_layers(*preset("gpt2"), 2).num_layers, 2);
}

}  // namespace
}  // namespace snug::models
