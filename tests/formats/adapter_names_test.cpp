// Names of an adapter's tensors, and ranks and scales by names of modules.
#include "formats/adapter/adapter_names.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "../base/temporary_folder.h"
#include "base/json.h"
#include "formats/adapter/lora_config.h"
#include "formats/adapter/lora_patterns.h"
#include "formats/adapter/peft_adapter.h"

namespace snug::formats {
namespace {

using base::DType;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

TEST(AdapterNames, WrappersAndAdaptersLeaveNames) {
  const std::string plain = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
  for (const char* stored :
       {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight",
        "base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight",
        "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight",
        "base_model.model.language_model.model.layers.0.self_attn.q_proj.lora_A.weight",
        "base_model.model.model.language_model.model.layers.0.self_attn.q_proj.lora_A.weight",
        "base_model.model._orig_mod.model.layers.0.self_attn.q_proj.lora_A.weight",
        "module.base_model.model.model.layers.0.self_attn.q_proj.lora_A.my_adapter.weight",
        "_fsdp_wrapped_module.base_model.model.model.layers.0._checkpoint_wrapped_module.self_attn."
        "q_proj.lora_A.weight"})
    EXPECT_EQ(plain_adapter_tensor(stored), plain) << stored;
  const std::map<std::string, std::string> others{
      {"base_model.model.m.q_proj.lora_magnitude_vector.default.weight",
       "base_model.model.m.q_proj.lora_magnitude_vector"},
      {"base_model.model.m.q_proj.lora_magnitude_vector.weight",
       "base_model.model.m.q_proj.lora_magnitude_vector"},
      {"base_model.model.m.embed_tokens.lora_embedding_B.default",
       "base_model.model.m.embed_tokens.lora_embedding_B"},
      {"base_model.model.lm_head.modules_to_save.default.weight",
       "base_model.model.lm_head.weight"},
      {"base_model.model.lm_head.modules_to_save.weight",
       "base_model.model.lm_head.modules_to_save.weight"},
      {"base_model.model.m.e.token_adapter.trainable_tokens_delta.default",
       "base_model.model.m.e.token_adapter.trainable_tokens_delta"},
      {"lm_head.weight", "lm_head.weight"}};
  for (const auto& [stored, expected] : others) EXPECT_EQ(plain_adapter_tensor(stored), expected);
  EXPECT_EQ(plain_module("model.language_model.layers.1.mlp"), "model.layers.1.mlp");
  EXPECT_EQ(adapted_module("base_model.model.a.language_model.q_proj.lora_A.x.weight"),
            "a.language_model.q_proj");
  EXPECT_EQ(adapted_module("base_model.model.a.q_proj.lora_B.weight"), std::nullopt);
}

std::optional<double> value_of(const std::string& patterns, const std::string& module) {
  const std::string text = R"({"rank_pattern": )" + patterns + "}";
  const auto document = base::parse_json(text, "adapter_config.json");
  const base::JsonObject config(document, "adapter_config.json");
  return LoraPatterns(config, "rank_pattern", text).of(module);
}

// As PEFT: a key matches a whole name or its last parts, and the first key of the file counts.
TEST(LoraPatterns, MatchAsPeft) {
  const std::string q = "model.layers.1.self_attn.q_proj";
  EXPECT_EQ(value_of(R"({"q_proj": 8})", q), 8);
  EXPECT_EQ(value_of(R"({"_proj": 8})", q), std::nullopt);
  EXPECT_EQ(value_of(R"({"layers.1.self_attn.q_proj": 8})", q), 8);
  EXPECT_EQ(value_of(R"({"layers.1": 8})", q), std::nullopt);
  EXPECT_EQ(value_of(R"({"^q_proj": 8})", q), std::nullopt);
  EXPECT_EQ(value_of(R"({"^model\\.layers\\.\\d+\\..*": 8})", q), 8);
  EXPECT_EQ(value_of(R"({"k_proj|q_proj": 8})", q), 8);
  EXPECT_EQ(value_of(R"({"q_proj": 8, "^model.*": 4})", q), 8);
  EXPECT_EQ(value_of(R"({"^model.*": 4, "q_proj": 8})", q), 4);
  EXPECT_EQ(value_of("{}", q), std::nullopt);
  EXPECT_EQ(value_of("null", q), std::nullopt);
  const auto refusal = [&](const char* patterns) {
    return user_error_of([&] { value_of(patterns, q); });
  };
  EXPECT_TRUE(contains(refusal(R"({"q_proj": 0})"), "is 0; expected more than 0"));
  EXPECT_TRUE(contains(refusal(R"({"q_proj": "8"})"), "q_proj' must be a number"));
  EXPECT_TRUE(contains(refusal(R"({"q_proj(": 8})"), "'rank_pattern' cannot be used: the regular"));
}

// A folder with q and v of two layers, as a multimodal model names them.
class SizedAdapter : public ::testing::Test {
 protected:
  std::string error_with(const char* patch) {
    nlohmann::json config = {{"peft_type", "LORA"},
                             {"r", 2},
                             {"lora_alpha", 4},
                             {"target_modules", {"q_proj", "v_proj"}}};
    config.update(nlohmann::json::parse(patch));
    folder_.write("adapter_config.json", config.dump());
    return user_error_of([&] { config_ = read_lora_config(folder_.path()); });
  }

  void SetUp() override {
    std::vector<TensorSpec> tensors;
    for (const char* module : {"0.q_proj", "0.v_proj", "1.q_proj"}) {
      const std::string name =
          std::string("base_model.model.model.language_model.layers.") + module;
      tensors.push_back({name + ".lora_A.weight", DType::f32, {2, 3}});
      tensors.push_back({name + ".lora_B.weight", DType::f32, {3, 2}});
    }
    SafetensorsWriter writer(folder_ / kAdapterWeightsName, tensors);
    const std::vector<float> values(6);
    for (const TensorSpec& tensor : tensors) writer.write(tensor.name, values.data(), 24);
    writer.finish();
  }

  TemporaryFolder folder_;
  LoraConfig config_;
};

TEST_F(SizedAdapter, PatternsMatchTheNamesOfTheFile) {
  ASSERT_EQ(error_with(R"({"rank_pattern": {"language_model.layers.0.q_proj": 5},
                           "alpha_pattern": {"q_proj": 1.5}, "use_rslora": true})"),
            "(no error)");
  const LoraSizes expected{{"model.layers.0.q_proj", {5, 1.5}},
                           {"model.layers.1.q_proj", {2, 1.5}}};
  EXPECT_EQ(config_.sizes, expected);
  EXPECT_EQ(config_.size_of("model.layers.0.v_proj"), (LoraSize{2, 4}));
  EXPECT_EQ(lora_scale({4, 3}, true), 1.5);
  EXPECT_TRUE(contains(error_with(R"({"rank_pattern": {"q_proj": 2.5}})"),
                       "'rank_pattern' gives 'model.language_model.layers.0.q_proj' the rank 2.5"));
}

TEST_F(SizedAdapter, ARegularExpressionSelectsTheNamesOfTheFile) {
  ASSERT_EQ(error_with(R"({"target_modules": "^model\\.language_model\\..*_proj"})"), "(no error)");
  EXPECT_EQ(config_.target_modules,
            (std::vector<std::string>{"model.layers.0.q_proj", "model.layers.0.v_proj",
                                      "model.layers.1.q_proj"}));
  ASSERT_EQ(error_with(R"({"target_modules": ["model.language_model.layers.0.q_proj", "v_proj"]})"),
            "(no error)");
  EXPECT_EQ(config_.target_modules, (std::vector<std::string>{"model.layers.0.q_proj", "v_proj"}));
}

TEST_F(SizedAdapter, RowsOfTokensAreListsOfTokens) {
  ASSERT_EQ(error_with(R"({"trainable_token_indices": [7, 3]})"), "(no error)");
  ASSERT_EQ(config_.token_rows.size(), 1U);
  EXPECT_EQ(config_.token_rows.front().module, "");
  EXPECT_EQ(config_.token_rows.front().tokens, (std::vector<int64_t>{7, 3}));
  ASSERT_EQ(error_with(R"({"trainable_token_indices": {"lm_head": [1], "embed_tokens": [2]}})"),
            "(no error)");
  EXPECT_EQ(config_.token_rows.size(), 2U);
  for (const char* list : {"[1, 1]", "[-1]", "[1.5]", "[1e300]"})
    EXPECT_TRUE(
        contains(error_with((R"({"trainable_token_indices": )" + std::string(list) + "}").c_str()),
                 "'trainable_token_indices' holds"))
        << list;
}

// Of a multimodal model the text part alone is here.
TEST_F(SizedAdapter, WhatReadsImagesIsLeftOutAndNamed) {
  const std::string image = "base_model.model.model.vision_tower.layers.0.q_proj";
  const std::string text = "base_model.model.model.language_model.layers.0.q_proj";
  std::vector<TensorSpec> tensors;
  for (const std::string& module : {image, text}) {
    tensors.push_back({module + ".lora_A.weight", DType::f32, {2, 3}});
    tensors.push_back({module + ".lora_B.weight", DType::f32, {3, 2}});
  }
  SafetensorsWriter writer(folder_ / kAdapterWeightsName, tensors);
  const std::vector<float> values(6);
  for (const TensorSpec& tensor : tensors) writer.write(tensor.name, values.data(), 24);
  writer.finish();
  ASSERT_EQ(error_with(R"({"target_modules": ".*q_proj"})"), "(no error)");
  const std::vector<std::string> only{"model.layers.0.q_proj"};
  EXPECT_EQ(config_.target_modules, only);
  const PeftAdapter adapter(folder_.path());
  EXPECT_EQ(adapter.left_out(),
            (std::vector<std::string>{image + ".lora_A.weight", image + ".lora_B.weight"}));
  ASSERT_EQ(adapter.modules().size(), 1U);
  EXPECT_EQ(adapter.modules().front().module, only.front());
}

TEST(PeftAdapter, TwoTensorsOfOneNameAreRefused) {
  const TemporaryFolder folder;
  const std::string one = "base_model.model.m.q_proj.lora_A.weight";
  const std::string other = "base_model.model.m.q_proj.lora_A.default.weight";
  const std::vector<TensorSpec> tensors{{one, DType::f32, {1, 1}}, {other, DType::f32, {1, 1}}};
  SafetensorsWriter writer(folder / kAdapterWeightsName, tensors);
  const float value = 1;
  for (const TensorSpec& tensor : tensors) writer.write(tensor.name, &value, 4);
  writer.finish();
  EXPECT_TRUE(contains(user_error_of([&] { open_adapter_file(folder.path()); }),
                       "are both 'base_model.model.m.q_proj.lora_A.weight'"));
}

}  // namespace
}  // namespace snug::formats
