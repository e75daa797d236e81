// What a pattern selects of a model's weights, and what it is told where that is nothing.
#include "models/stored/weight_patterns.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "models/weights.h"

namespace snug::models {
namespace {

using testing::contains;
using Names = std::vector<std::string>;

// Twelve layers, so that some numbers begin with others.
ModelConfig twelve_layers() {
  ModelConfig config = *preset("llama-3.1-8b");
  config.num_layers = 12;
  return config;
}

size_t count(const ModelConfig& config, const std::string& pattern) {
  return weights_matching(config, pattern).size();
}

constexpr size_t kWeightsOfLayer = 9;

TEST(WeightPatterns, NameATensorOrAModuleWithAllThatIsInIt) {
  const ModelConfig config = twelve_layers();
  const Names q{"model.layers.3.self_attn.q_proj.weight"};
  EXPECT_EQ(weights_matching(config, "model.layers.3.self_attn.q_proj.weight"), q);
  EXPECT_EQ(weights_matching(config, "model.layers.3.self_attn.q_proj"), q);
  EXPECT_EQ(count(config, "model.layers.3.self_attn"), 4U);
  EXPECT_EQ(count(config, "model.layers.3"), kWeightsOfLayer);
  EXPECT_EQ(count(config, "model.layers"), 12 * kWeightsOfLayer);
  EXPECT_EQ(weights_matching(config, "model").size(), weights_of(config).size() - 1);
  EXPECT_EQ(weights_matching(config, "lm_head"), Names{"lm_head.weight"});
}

TEST(WeightPatterns, TakeTheLastPartsOfANameAsTargetModulesDoes) {
  const ModelConfig config = twelve_layers();
  EXPECT_EQ(count(config, "q_proj"), 12U);
  EXPECT_EQ(count(config, "mlp.down_proj"), 12U);
  EXPECT_EQ(count(config, "layers.3"), kWeightsOfLayer);
  EXPECT_EQ(weights_matching(config, "embed_tokens"), Names{"model.embed_tokens.weight"});
}

TEST(WeightPatterns, MatchWholePartsAlone) {
  const ModelConfig config = twelve_layers();
  EXPECT_EQ(count(config, "layers.1"), kWeightsOfLayer) << "and not layers 10 and 11";
  EXPECT_EQ(weights_matching(config, "norm"), Names{"model.norm.weight"});
  for (const char* pattern : {"proj", "q_pro", "layers.12", "model.layers.3.", "self_attn.3",
                              "ayers.1", "attn.q_proj", ""})
    EXPECT_EQ(count(config, pattern), 0U) << pattern;
}

TEST(WeightPatterns, HaveWildcardsAndRanges) {
  const ModelConfig config = twelve_layers();
  EXPECT_EQ(count(config, "model.layers.[0-9].*"), 10 * kWeightsOfLayer);
  EXPECT_EQ(count(config, "layers.[0-9]"), 10 * kWeightsOfLayer);
  EXPECT_EQ(count(config, "layers.1[0-1]"), 2 * kWeightsOfLayer);
  EXPECT_EQ(count(config, "layers.[!0-8]"), kWeightsOfLayer);
  EXPECT_EQ(count(config, "layers.??"), 2 * kWeightsOfLayer);
  EXPECT_EQ(count(config, "layers.1*"), 3 * kWeightsOfLayer);
  EXPECT_EQ(count(config, "*.q_proj"), 12U);
  EXPECT_EQ(count(config, "model.*.weight"), weights_of(config).size() - 1) << "dots too";
  EXPECT_EQ(count(config, "*norm*"), 2 * 12U + 1);
  EXPECT_EQ(count(config, "*"), weights_of(config).size());
}

TEST(WeightPatterns, OfTiedEmbeddingsEitherNameIsTheTensor) {
  ModelConfig config = twelve_layers();
  config.tied_embeddings = true;
  const Names embedding{"model.embed_tokens.weight"};
  for (const char* pattern : {"lm_head", "lm_head.weight", "model.embed_tokens", "embed_tokens"})
    EXPECT_EQ(weights_matching(config, pattern), embedding) << pattern;
}

TEST(WeightPatterns, AModuleHasItsBiases) {
  ModelConfig config = twelve_layers();
  config.model_type = "qwen2";
  EXPECT_EQ(count(config, "layers.0.self_attn.q_proj"), 2U);
  EXPECT_EQ(count(config, "layers.0.self_attn.q_proj.bias"), 1U);
  EXPECT_EQ(count(config, "bias"), 3 * 12U);
}

TEST(WeightPatterns, ProjectionsInOneTensorHaveItsName) {
  ModelConfig config = twelve_layers();
  config.model_type = "phi3";
  EXPECT_EQ(count(config, "qkv_proj"), 12U);
  EXPECT_EQ(count(config, "q_proj"), 0U);
  const std::string advice = known_names(config, "q_proj");
  EXPECT_TRUE(contains(advice, "a part of \"self_attn.qkv_proj\" here"));
  EXPECT_TRUE(contains(advice, "mlp.gate_up_proj"));
  EXPECT_TRUE(contains(known_names(config, "layers.*.up_proj"), "a part of \"mlp.gate_up_proj\""));
  EXPECT_TRUE(contains(known_names(config, "o_prj"), "did you mean \"o_proj\"?"));
}

TEST(WeightPatterns, WhatIsNotThereIsToldTheNearestName) {
  ModelConfig config = twelve_layers();
  config.model_type = "qwen2";
  EXPECT_EQ(known_names(config, "self_atn"),
            "did you mean \"self_attn\"? the model has model.embed_tokens, model.norm, lm_head, "
            "model.layers.0 to model.layers.11, and in each layer input_layernorm, "
            "self_attn.q_proj, self_attn.k_proj, self_attn.v_proj, self_attn.o_proj, "
            "post_attention_layernorm, mlp.gate_proj, mlp.up_proj, mlp.down_proj");
  EXPECT_TRUE(contains(known_names(config, "model.layers.4.self_atn.q_proj"),
                       "did you mean \"model.layers.4.self_attn.q_proj\"?"));
  EXPECT_TRUE(known_names(config, "nothing_like_it").starts_with("the model has"));
}

}  // namespace
}  // namespace snug::models
