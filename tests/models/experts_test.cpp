// Mixtures of experts: the names of stacked tensors and of what files hold of them, and what of
// config.json is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/error.h"
#include "models/families/families.h"
#include "models/stored/expert_names.h"
#include "models/weights.h"

namespace snug::models {
namespace {

ExpertsBlock three_experts() {
  ExpertsBlock experts;
  experts.router = {"mlp.gate", 3, 5};
  experts.experts = 3;
  experts.chosen = 2;
  experts.module = "mlp.experts";
  experts.gate = "gate_proj";
  experts.up = "up_proj";
  experts.down = "down_proj";
  experts.inner = 4;
  return experts;
}

TEST(ExpertNames, StackedTensorsAreThoseOfFilesOneAfterTheOther) {
  const ExpertsBlock experts = three_experts();
  EXPECT_EQ(gate_up_name(experts), "mlp.experts.*.gate_proj+up_proj.weight");
  EXPECT_EQ(down_name(experts), "mlp.experts.*.down_proj.weight");
  const auto pieces = file_pieces("model.layers.7." + gate_up_name(experts), {3, 8, 5});
  ASSERT_EQ(pieces.size(), 6U);
  EXPECT_EQ(pieces[0].name, "model.layers.7.mlp.experts.0.gate_proj.weight");
  EXPECT_EQ(pieces[1].name, "model.layers.7.mlp.experts.0.up_proj.weight");
  EXPECT_EQ(pieces[5].name, "model.layers.7.mlp.experts.2.up_proj.weight");
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].shape, (program::Shape{4, 5}));
    EXPECT_EQ(pieces[i].first, static_cast<int64_t>(i) * 20);
  }
  EXPECT_EQ(file_pieces("a." + down_name(experts), down_shape(experts))[1].name,
            "a.mlp.experts.1.down_proj.weight");
}

TEST(ExpertNames, OtherTensorsAreOneOfTheirOwn) {
  const auto pieces = file_pieces("model.norm.weight", {5});
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].name, "model.norm.weight");
  EXPECT_EQ(pieces[0].shape, (program::Shape{5}));
  EXPECT_FALSE(is_stacked("model.norm.weight"));
}

constexpr const char* kSmall =
    R"({"model_type": "mixtral", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48,
        "vocab_size": 100)";

std::string small(const std::string& more) { return kSmall + more + "}"; }

std::string error_of(const std::string& text) {
  try {
    parse_config(text, "config.json");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

// Routers, and what else of a layer is a matrix and no linear.
TEST(ExpertWeights, MatricesThatStayIn16Bits) {
  const std::vector<std::string> names =
      matrices_in_16_bits(stack_of(parse_config(small(""), "config.json")));
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names)
    EXPECT_NE(name.find("block_sparse_moe.gate"), std::string::npos) << name;
}

TEST(ExpertWeights, HaveTheElementsThatFilesHave) {
  const Stack stack = stack_of(parse_config(small(""), "config.json"));
  int64_t in_memory = 0;
  int64_t in_files = 0;
  for (const Weight& weight : weights_of(stack)) in_memory += weight.shape.elements();
  std::set<std::string> names;
  for (const Weight& weight : file_weights_of(stack)) {
    in_files += weight.shape.elements();
    EXPECT_TRUE(names.insert(weight.name).second) << weight.name;
    const bool is_of_experts = weight.name.find("block_sparse_moe") != std::string::npos;
    EXPECT_EQ(weight.is_linear(), !is_of_experts && weight.name.find("_proj") != std::string::npos)
        << weight.name;
  }
  EXPECT_EQ(in_memory, in_files);
  EXPECT_TRUE(names.contains("model.layers.1.block_sparse_moe.experts.7.w2.weight"));
  EXPECT_TRUE(names.contains("model.layers.0.block_sparse_moe.gate.weight"));
}

// Files that hold experts together have what memory has.
TEST(ExpertWeights, LieTogetherInFilesToo) {
  const Stack stack = stack_of(parse_config(
      R"({"model_type": "gpt_oss", "hidden_size": 32, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48,
          "num_local_experts": 6, "vocab_size": 100})",
      "config.json"));
  std::set<std::string> linears;
  std::set<std::string> of_experts;
  std::set<std::string> routers;
  for (const Weight& weight : weights_of(stack)) {
    if (weight.layer != 1) continue;
    const std::string name = weight.name.substr(std::string("model.layers.1.").size());
    if (weight.is_linear()) linears.insert(name);
    if (weight.is_expert) of_experts.insert(name);
    if (weight.is_router) routers.insert(name);
    if (name == "mlp.experts.gate_up_proj") {
      EXPECT_EQ(weight.shape, (program::Shape{6, 32, 96}));
    }
    if (name == "mlp.experts.down_proj_bias") {
      EXPECT_EQ(weight.shape, (program::Shape{6, 32}));
    }
  }
  using Names = std::set<std::string>;
  EXPECT_EQ(linears, (Names{"self_attn.k_proj.weight", "self_attn.o_proj.weight",
                            "self_attn.q_proj.weight", "self_attn.v_proj.weight"}));
  EXPECT_EQ(of_experts, (Names{"mlp.experts.down_proj", "mlp.experts.down_proj_bias",
                               "mlp.experts.gate_up_proj", "mlp.experts.gate_up_proj_bias"}));
  EXPECT_EQ(routers, (Names{"mlp.router.weight"}));
  const auto in_files = file_weights_of(stack);
  EXPECT_EQ(in_files.size(), weights_of(stack).size());
}

TEST(ExpertConfig, DefaultsAreHuggingFaces) {
  const ModelConfig config = parse_config(small(""), "config.json");
  EXPECT_EQ(config.num_experts, 8);
  EXPECT_EQ(config.chosen_experts, 2);
  EXPECT_EQ(config.expert_size, 48);
  EXPECT_EQ(config.rope.theta, 1e6);
  const auto theta = [](const char* keys) {
    return parse_config(small(keys), "config.json").rope.theta;
  };
  EXPECT_EQ(theta(R"(, "rope_parameters": {"rope_type": "default"})"), 1e6);
  EXPECT_EQ(theta(R"(, "rope_scaling": {"rope_type": "default", "rope_theta": 500000.0})"), 5e5);
  EXPECT_FALSE(config.router_loss);
  EXPECT_EQ(config.router_coefficient, 0.001);
  const ModelConfig with_loss =
      parse_config(small(R"(, "output_router_logits": true)"), "config.json");
  EXPECT_TRUE(with_loss.router_loss);
  EXPECT_EQ(with_loss.router_loss_factor(), 0.001);
}

TEST(ExpertConfig, LayersWithOneMlpAreNamedOrCounted) {
  const std::string text =
      R"({"model_type": "qwen3_moe", "hidden_size": 32, "num_hidden_layers": 6,
          "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 100,
          "decoder_sparse_step": 2, "mlp_only_layers": [3]})";
  EXPECT_EQ(parse_config(text, "config.json").dense_layers, (std::vector<int64_t>{0, 2, 3, 4}));
}

TEST(ExpertConfig, LayersThatAreNotThereAreRefused) {
  for (const char* layer : {"6", "-1", "2.5"}) {
    const std::string text = fmt::format(
        R"({{"model_type": "qwen3_moe", "hidden_size": 32, "num_hidden_layers": 6,
             "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 100,
             "mlp_only_layers": [{}]}})",
        layer);
    EXPECT_NE(error_of(text).find("mlp_only_layers"), std::string::npos) << layer;
  }
}

TEST(ExpertConfig, GroupsAreEqualAndHaveEnoughExperts) {
  const auto text = [](const char* groups) {
    return fmt::format(
        R"({{"model_type": "glm4_moe", "hidden_size": 32, "num_hidden_layers": 3,
             "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 48,
             "vocab_size": 100, "n_routed_experts": 12, "num_experts_per_tok": 3, {}}})",
        groups);
  };
  const ModelConfig config =
      parse_config(text(R"("n_group": 4, "topk_group": 2, "first_k_dense_replace": 2)"), "file");
  EXPECT_EQ(config.dense_layers, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(config.shared_expert_size, 1408);
  EXPECT_NE(error_of(text(R"("n_group": 5)")).find("n_group"), std::string::npos);
  EXPECT_NE(error_of(text(R"("n_group": 12)")).find("n_group"), std::string::npos);
  EXPECT_NE(error_of(text(R"("n_group": 2, "topk_group": 3)")).find("topk_group"),
            std::string::npos);
  EXPECT_NE(error_of(text(R"("n_group": 6, "topk_group": 1)")).find("topk_group"),
            std::string::npos);
}

// Corrections of scores are fp32 whatever the rest is, and never train; the layer behind the last
// one is left out.
TEST(Experts, CorrectionsAreConstantsOfTheModel) {
  const Stack stack = stack_of(*preset("glm-4.5-air"));
  int constants = 0;
  for (const Weight& weight : weights_of(stack)) constants += weight.is_constant ? 1 : 0;
  EXPECT_EQ(constants, 45);
  EXPECT_TRUE(is_ignorable("model.layers.46.mlp.gate.weight", stack));
  EXPECT_FALSE(is_ignorable("model.layers.45.mlp.gate.weight", stack));
  EXPECT_FALSE(is_ignorable("model.layers.46.mlp.gate.weight", stack_of(*preset("qwen3-8b"))));
}

TEST(ExpertConfig, WhatIsNotBuiltIsRefusedByName) {
  EXPECT_NE(error_of(small(R"(, "num_experts_per_tok": 9)")).find("num_experts_per_tok"),
            std::string::npos);
  EXPECT_NE(error_of(small(R"(, "router_jitter_noise": 0.1)")).find("router_jitter_noise"),
            std::string::npos);
  EXPECT_NE(error_of(small(R"(, "router_aux_loss_coef": -1)")).find("router_aux_loss_coef"),
            std::string::npos);
}

}  // namespace
}  // namespace snug::models
