// The table of methods, and what LoRA's rows say of modules that train whole.
#include "methods/method.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/words.h"
#include "formats/recipe/method_keys.h"
#include "formats/recipe/recipe.h"
#include "methods/update.h"
#include "models/families/families.h"
#include "models/forward/forward.h"
#include "program/kinds/transfer/storage.h"
#include "program/verify/verify.h"

namespace snug::methods {
namespace {

using program::Program;
using program::Tensor;
using testing::user_error_of;

TEST(Methods, EachWordHasARowWhichSaysWhatRecipesSay) {
  for (const auto& word : words_of(MethodKind{})) {
    const Method& method = method_of(word.value);
    EXPECT_EQ(method.kind, word.value);
    EXPECT_EQ(method.trains_weights, formats::method_keys_of(word.value).trains_weights);
    EXPECT_EQ(method.rewrite == nullptr && method.extend == nullptr, method.trains_weights);
  }
  EXPECT_EQ(method_of(formats::AdapterConfig(formats::LoraConfig{})).kind, MethodKind::lora);
  EXPECT_EQ(method_of(formats::AdapterConfig(formats::PromptConfig{})).kind, MethodKind::adapter);
  formats::PromptConfig second;
  second.adjusts_linears = true;
  EXPECT_EQ(method_of(formats::AdapterConfig(second)).kind, MethodKind::adapter_v2);
}

TEST(Methods, AKeyIsIdleWithTheMethodsThatDoNotReadIt) {
  EXPECT_TRUE(formats::is_idle_key(MethodKind::full, "modules_to_save"));
  EXPECT_FALSE(formats::is_idle_key(MethodKind::qlora, "modules_to_save"));
  EXPECT_TRUE(formats::is_idle_key(MethodKind::lora, "freeze_modules"));
  EXPECT_FALSE(formats::is_idle_key(MethodKind::full, "learning_rate"));
}

Program forward() {
  models::ModelConfig config = *models::preset("llama-2-7b");
  config.num_layers = 2;
  return models::forward(models::stack_of(config), {.program = program::ProgramName::evaluate,
                                                    .compute = program::DType::f32,
                                                    .tokens = 16,
                                                    .segments = 2,
                                                    .head = models::Head::loss,
                                                    .outputs = 0,
                                                    .cache = {}});
}

MethodOptions saving(std::vector<std::string> modules) {
  return {.lora = {.target_modules = {"q_proj"}, .modules_to_save = std::move(modules)}};
}

TEST(ModulesToSave, TrainNextToTheAdapterWithTheModelsValues) {
  const Program adapted = kLora.rewrite(forward(), saving({"lm_head", "model.norm", "head"}), true);
  EXPECT_EQ(program::verify(adapted), std::vector<std::string>{});
  std::vector<std::string> whole;
  for (const program::TensorId id : trainable_tensors(adapted)) {
    const Tensor& tensor = adapted.tensor(id);
    EXPECT_EQ(kLora.initial_values(tensor, {}).has_value(), is_lora_tensor(tensor.name));
    if (!is_lora_tensor(tensor.name)) whole.push_back(tensor.name);
  }
  EXPECT_EQ(whole, (std::vector<std::string>{"model.norm.weight", "lm_head.weight"}));
}

TEST(ModulesToSave, WhatCannotTrainWholeIsNamed) {
  const auto error_of = [](const char* module) {
    return user_error_of([&] { kLora.rewrite(forward(), saving({module}), true); });
  };
  EXPECT_NE(error_of("down_proj")
                .find("\"down_proj\" is a matrix of a layer (model.layers.0.mlp."
                      "down_proj.weight)"),
            std::string::npos)
      << error_of("down_proj");
  EXPECT_NE(error_of("score").find("matches no module of this model; it has embed_tokens, "
                                   "input_layernorm, post_attention_layernorm, norm, lm_head"),
            std::string::npos)
      << error_of("score");
  // With one that it takes, before it.
  const std::string both = user_error_of([] {
    kLora.rewrite(forward(), saving({"lm_head", "score"}), true);
  });
  EXPECT_NE(both.find("post_attention_layernorm, norm, lm_head"), std::string::npos) << both;
  const BaseModel tied{"model.embed_tokens.weight", "lm_head.weight", true, false};
  for (const char* module : {"embed_tokens", "lm_head"})
    EXPECT_NE(user_error_of([&] { kQlora.refuse(saving({module}), tied); }).find("are one tensor"),
              std::string::npos);
  kQlora.refuse(saving({"norm"}), tied);
  const BaseModel narrow{"model.embed_tokens.weight", "lm_head.weight", false, true};
  EXPECT_NE(user_error_of([&] {
              kQlora.refuse(saving({"lm_head"}), narrow);
            }).find("set load_head_in_4bit=false"),
            std::string::npos);
  kQlora.refuse(saving({"embed_tokens"}), narrow);
}

// GPT-NeoX's head: PEFT trains a module of modules_to_save, and knows one of the two.
TEST(Methods, TheConfigOfAnAdapterHasBothNamesOfARenamedModule) {
  formats::Recipe recipe;
  const auto saved = [&](const char* tensor, std::vector<std::string> modules) {
    recipe.modules_to_save = std::move(modules);
    program::Tensor whole;
    whole.name = tensor;
    const std::vector<program::Tensor> tensors{whole};
    const auto config = kLora.config({.recipe = recipe, .tensors = tensors});
    return std::get<formats::LoraConfig>(config).modules_to_save;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(saved("embed_out.weight", {"lm_head"}), (Names{"lm_head", "embed_out"}));
  EXPECT_EQ(saved("embed_out.weight", {"embed_out"}), (Names{"embed_out", "lm_head"}));
  EXPECT_EQ(saved("lm_head.weight", {"lm_head"}), Names{"lm_head"});
}

}  // namespace
}  // namespace snug::methods
