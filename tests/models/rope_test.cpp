// Rotation and what else config.json says of blocks: keys that few files have, and the keys that
// messages name.
#include "models/config/rope.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "../base/temporary_folder.h"
#include "models/config/config.h"
#include "models/families/families.h"
#include "models/forward/forward.h"
#include "program/text/text.h"

namespace snug::models {
namespace {

using testing::contains;

// A small config.json, with more keys; later ones replace earlier ones.
std::string config_text(const char* family, const char* more) {
  nlohmann::json json = {{"model_type", family},           {"hidden_size", 32},
                         {"num_hidden_layers", 2},         {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},       {"intermediate_size", 48},
                         {"max_position_embeddings", 128}, {"vocab_size", 100}};
  json.update(nlohmann::json::parse(more));
  return json.dump();
}

ModelConfig parse(const char* family, const char* more) {
  return parse_config(config_text(family, more), "config.json");
}

ModelConfig saved(const ModelConfig& config) {
  return parse_config(describe(config).dump(), "saved");
}

std::string network_of(const Stack& stack) {
  return program::to_text(forward(stack, {.program = program::ProgramName::prefill,
                                          .tokens = 3,
                                          .segments = 1,
                                          .head = Head::logits,
                                          .outputs = 1}));
}

// As transformers' ROPE_INIT_FUNCTIONS["yarn"] computes them of the same keys.
TEST(Rope, YarnsFurtherKeysAreTransformers) {
  const auto rope = [](const std::string& more) {
    const ModelConfig config =
        parse("llama", fmt::format(R"({{"rope_scaling": {{"rope_type": "yarn", "factor": 4.0,
              "rope_theta": 20.0, "original_max_position_embeddings": 32, "beta_fast": 4.0,
              "beta_slow": 1.0 {}}}}})",
                                   more)
                           .c_str());
    EXPECT_EQ(saved(config).rope.attention_factor, config.rope.attention_factor) << more;
    EXPECT_EQ(inverse_frequencies(saved(config)), inverse_frequencies(config)) << more;
    return config;
  };
  const auto factor = [&](const std::string& more) { return rope(more).rope.attention_factor; };
  EXPECT_DOUBLE_EQ(factor(""), 1.138629436111989);
  // One of the two alone says nothing.
  EXPECT_DOUBLE_EQ(factor(R"(, "mscale": 0.7)"), 1.138629436111989);
  EXPECT_DOUBLE_EQ(factor(R"(, "mscale": 0.7, "mscale_all_dim": 1.5)"), 0.9081881819561598);
  EXPECT_DOUBLE_EQ(factor(R"(, "attention_factor": 1.25)"), 1.25);
  EXPECT_DOUBLE_EQ(factor(R"(, "attention_factor": 1.25, "mscale": 0.7, "mscale_all_dim": 1.5)"),
                   1.25);
  const auto expect_near = [](const std::vector<float>& values, const std::array<float, 4>& those) {
    ASSERT_EQ(values.size(), those.size());
    for (size_t i = 0; i < those.size(); ++i) EXPECT_NEAR(values[i], those[i], 1e-6 * those[i]);
  };
  expect_near(inverse_frequencies(rope("")), {1.0F, 0.35465309F, 0.11180340F, 0.02643428F});
  expect_near(inverse_frequencies(rope(R"(, "truncate": false)")),
              {1.0F, 0.34307164F, 0.07162739F, 0.02643428F});
}

// Up to max_position_embeddings transformers' dynamic scaling changes nothing, and no sequence is
// longer (docs of plan: max_length).
TEST(Rope, DynamicScalingIsKeptAndChangesNothing) {
  for (const char* family : {"llama", "mistral", "qwen2", "stablelm"}) {
    const ModelConfig scaled =
        parse(family, R"({"rope_scaling": {"type": "dynamic", "factor": 2.5}})");
    const ModelConfig plain = parse(family, "{}");
    EXPECT_EQ(inverse_frequencies(scaled, 128), inverse_frequencies(plain, 128)) << family;
    EXPECT_EQ(network_of(stack_of(scaled)), network_of(stack_of(plain))) << family;
    EXPECT_EQ(describe(saved(scaled))["rope_scaling"],
              nlohmann::json({{"rope_type", "dynamic"}, {"factor", 2.5}}))
        << family;
  }
}

TEST(Rope, NeoxsThetaStandsInTheScalingOrAtTheTop) {
  const auto theta = [](const char* more) {
    nlohmann::json json = nlohmann::json::parse(more);
    json["num_key_value_heads"] = 4;
    return parse("gpt_neox", json.dump().c_str()).rope.theta;
  };
  EXPECT_EQ(theta("{}"), 1e4);
  EXPECT_EQ(theta(R"({"rotary_emb_base": 500})"), 500);
  EXPECT_EQ(theta(R"({"rope_parameters": {"rope_theta": 700}})"), 700);
  EXPECT_EQ(theta(R"({"rotary_emb_base": 500, "rope_parameters": {"rope_theta": 700}})"), 700);
  EXPECT_EQ(theta(R"({"rotary_emb_base": 500, "rope_parameters": {"rope_type": "default"}})"), 500);
}

// A reader looks for the key in the file.
TEST(Messages, NameKeysThatTheFileHas) {
  struct Case {
    const char* family;
    const char* more;
    const char* message;
  };
  for (const Case& wrong : {
           Case{"gpt_neox", R"({"num_key_value_heads": 4, "rotary_pct": 0.4})",
                "'rotary_pct' is 0.4, which rotates 3 of the 8"},
           Case{"gpt_neox", R"({"num_key_value_heads": 4,
                "rope_parameters": {"partial_rotary_factor": 0.4}})",
                "'rope_parameters.partial_rotary_factor' is 0.4, which rotates 3 of the 8"},
           Case{"stablelm", R"({"rope_parameters": {"partial_rotary_factor": 2}})",
                "'rope_parameters.partial_rotary_factor' is 2; expected"},
           Case{"stablelm", R"({"num_attention_heads": 8})",
                "'partial_rotary_factor' is absent and stands for 0.25, which rotates 1 of the 4"},
           Case{"gpt_neox", R"({"num_key_value_heads": 4, "rotary_emb_base": 0.5,
                "rope_scaling": {"type": "yarn", "factor": 2,
                                 "original_max_position_embeddings": 32}})",
                "'rotary_emb_base' is 0.5; yarn needs"},
           Case{"llama", R"({"rope_scaling": {"type": "yarn", "factor": 2, "rope_theta": 1,
                             "original_max_position_embeddings": 32}})",
                "'rope_scaling.rope_theta' is 1; yarn needs"},
           Case{"llama", R"({"rope_scaling": {"type": "yarn", "factor": 2, "mscale": 1e9,
                             "mscale_all_dim": 1, "original_max_position_embeddings": 32}})",
                "'rope_scaling.mscale' and mscale_all_dim make an attention factor of"},
           Case{"llama", R"({"rope_scaling": {"type": "yarn", "factor": 2, "attention_factor": -1,
                             "original_max_position_embeddings": 32}})",
                "'rope_scaling.attention_factor' is -1; expected"},
           Case{"llama", R"({"hidden_size": 28})", "'num_attention_heads' leaves heads of 7"},
           Case{"llama", R"({"head_dim": 7})", "'head_dim' leaves heads of 7"},
           Case{"stablelm", R"({"num_key_value_heads": 3})", "'num_key_value_heads' is 3;"},
           Case{"gemma2", R"({"sliding_window": null,
                "layer_types": ["sliding_attention", "full_attention"]})",
                "sliding_attention where the file sets sliding_window"},
           Case{"qwen2", R"({"layer_types": ["sliding_attention", "full_attention"]})",
                "where the file sets use_sliding_window and sliding_window"},
       })
    EXPECT_TRUE(
        contains(testing::user_error_of([&] { parse(wrong.family, wrong.more); }), wrong.message))
        << wrong.message;
  nlohmann::json json = nlohmann::json::parse(config_text("qwen2", "{}"));
  json.erase("num_key_value_heads");
  EXPECT_TRUE(contains(testing::user_error_of([&] { parse_config(json.dump(), "config.json"); }),
                       "'num_key_value_heads' is absent and stands for 32; 4 attention heads"));
}

// Gemma's scale of the scores is 1 / sqrt(query_pre_attn_scalar), in fp32.
TEST(Messages, ScalesThatFp32CannotHoldAreRefused) {
  for (const char* scalar : {"1e-300", "1e300", "0", "-4"})
    EXPECT_TRUE(contains(testing::user_error_of([&] {
                           parse("gemma2",
                                 fmt::format(R"({{"query_pre_attn_scalar": {}}})", scalar).c_str());
                         }),
                         "'query_pre_attn_scalar' is"))
        << scalar;
  EXPECT_EQ(parse("gemma2", R"({"query_pre_attn_scalar": 1e-60})").query_scalar, 1e-60);
}

// transformers takes rope_scaling in place of rope_parameters, the part of a head that is rotated
// too.
TEST(Rope, ScalingStandsInPlaceOfParametersWhereAFileHasBoth) {
  constexpr const char* kBoth = R"({"rope_parameters": {"rope_theta": 700, "rope_type": "linear",
      "factor": 4.0, "partial_rotary_factor": 0.25}, "rope_scaling": {"rope_type": "linear",
      "factor": 2.0, "partial_rotary_factor": 0.5}})";
  const ModelConfig config = parse("stablelm", kBoth);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.rope.factor, 2.0);
  EXPECT_EQ(config.partial_rotary_factor, 0.5);
  EXPECT_EQ(
      parse("llama", R"({"rope_parameters": {"rope_theta": 700}, "rope_scaling": {}})").rope.theta,
      700);
}

// What check_configs found: each is read as transformers reads it, or refused.
TEST(Config, IsReadAsTransformersReadsIt) {
  EXPECT_EQ(parse("gpt_oss", R"({"rope_scaling": {}})").rope.scaling, RopeScaling::yarn);
  EXPECT_EQ(parse("gpt_oss", R"({"rope_parameters": {}})").rope.scaling, RopeScaling::none);
  const char* kYarn = R"({{"rope_scaling": {{"rope_type": "yarn", "factor": 2.0,
      "original_max_position_embeddings": 16{}}}}})";
  const auto truncates = [&](const char* more) {
    return parse("llama", fmt::format(fmt::runtime(kYarn), more).c_str()).rope.truncate;
  };
  EXPECT_TRUE(truncates(""));
  EXPECT_FALSE(truncates(R"(, "truncate": null)"));
  const auto refusal = [](const char* family, const char* more) -> std::string {
    try {
      parse(family, more);
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_TRUE(contains(refusal("gpt2", R"({"num_attention_heads": null, "n_head": 5})"),
                       "'n_head' is 5, which does not divide hidden_size 32"));
  EXPECT_TRUE(contains(refusal("gemma2", R"({"attn_logit_softcapping": 0.0})"), "or null"));
  EXPECT_TRUE(contains(refusal("gemma2", R"({"final_logit_softcapping": 0})"), "or null"));
  EXPECT_EQ(refusal("gemma2", R"({"final_logit_softcapping": null})"), "no error");
  EXPECT_TRUE(
      contains(refusal("gemma3_text", R"({"rope_scaling": {"type": "linear", "factor": 8.0}})"),
               "call it rope_type"));
  EXPECT_TRUE(contains(refusal("llama", R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0,
      "low_freq_factor": -1, "high_freq_factor": 4, "original_max_position_embeddings": 16}})"),
                       "'rope_scaling.low_freq_factor' must be above 0"));
  EXPECT_TRUE(contains(refusal("phi3", R"({"num_key_value_heads": 4, "num_attention_heads": 16,
      "original_max_position_embeddings": 1, "rope_scaling": {"type": "longrope",
      "short_factor": [1.0], "long_factor": [1.0]}})"),
                       "original_max_position_embeddings = 1"));
  EXPECT_TRUE(contains(refusal("gemma3_text", R"({"rope_scaling": {"factor": 8.0},
      "rope_parameters": {"full_attention": {}, "sliding_attention": {}}})"),
                       "stands next to rope_parameters"));
}

// The names of other families stand above GPT-2's own, as in transformers.
TEST(Config, AnAliasStandsAboveTheNameThatItStandsFor) {
  constexpr const char* kAlias =
      R"({"n_head": 4, "num_attention_heads": 2, "num_key_value_heads": null})";
  EXPECT_EQ(parse("gpt2", kAlias).num_heads, 2);
  EXPECT_EQ(parse("bloom", kAlias).num_heads, 2);
}

TEST(Blocks, FalconsNewArchitectureMayHaveOneNorm) {
  const char* const one = R"({"new_decoder_architecture": true, "num_kv_heads": 2,
                              "num_ln_in_parallel_attn": 1})";
  const char* const two = R"({"new_decoder_architecture": true, "num_kv_heads": 2})";
  nlohmann::json json = nlohmann::json::parse(config_text("falcon", one));
  json.erase("num_key_value_heads");
  const ModelConfig config = parse_config(json.dump(), "config.json");
  const Layer layer = stack_of(config).layers[1];
  EXPECT_TRUE(layer.parallel);
  ASSERT_EQ(layer.branches.size(), 2U);
  EXPECT_EQ(layer.branches[0].norm_before->module, "input_layernorm");
  EXPECT_TRUE(layer.shares_norm(1));
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(network_of(stack_of(saved(config))), network_of(stack_of(config)));
  EXPECT_EQ(describe(config)["new_decoder_architecture"], true);
  EXPECT_EQ(describe(config)["num_ln_in_parallel_attn"], 1);
  json.update(nlohmann::json::parse(two));
  json.erase("num_ln_in_parallel_attn");
  const Layer normed_twice = stack_of(parse_config(json.dump(), "config.json")).layers[1];
  EXPECT_EQ(normed_twice.branches[0].norm_before->module, "ln_attn");
  EXPECT_FALSE(normed_twice.shares_norm(1));
}

// No family has a gated mlp with the exact form today; blocks.h offers it to the next one.
TEST(Blocks, AGatedMlpTakesEitherFormOfGelu) {
  Stack stack = stack_of(parse("gemma", "{}"));
  EXPECT_TRUE(contains(network_of(stack), "gelu_mul("));
  const auto lines_with_tanh = [&] {
    int lines = 0;
    const std::string text = network_of(stack);
    for (size_t at = text.find("gelu_mul("); at != std::string::npos;
         at = text.find("gelu_mul(", at + 1))
      lines += text.substr(at, text.find('\n', at) - at).find("tanh") != std::string::npos ? 1 : 0;
    return lines;
  };
  EXPECT_EQ(lines_with_tanh(), 2);
  for (Layer& layer : stack.layers)
    std::get<GatedMlp>(layer.branches[1].block).activation = Activation::gelu;
  EXPECT_TRUE(contains(network_of(stack), "gelu_mul("));
  EXPECT_EQ(lines_with_tanh(), 0);
}

}  // namespace
}  // namespace snug::models
