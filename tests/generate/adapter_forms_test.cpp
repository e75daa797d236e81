// Adapters in the forms that PEFT saves them in: log-probabilities that PEFT gives.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "../text/tiny_tokenizer.h"
#include "base/json.h"
#include "base/temporary_folder.h"
#include "engine/questions/prompt.h"
#include "formats/recipe/recipe.h"
#include "generate/score.h"
#include "golden_recipe.h"
#include "runtime/loading/load_weights.h"

namespace snug::testing {
namespace {

const std::string kForms = kGoldens + "adapter_forms/";

const nlohmann::json& expected_forms() {
  static const nlohmann::json kExpected = base::read_json_file(kForms + "expected.json");
  return kExpected;
}

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const auto& item : expected_forms().items()) names.push_back(item.key());
  return names;
}

class AdapterForms : public ::testing::TestWithParam<std::string> {};

TEST_P(AdapterForms, GivePeftsLogProbabilities) {
  const nlohmann::json& expected = expected_forms().at(GetParam());
  const auto ids = expected.at("ids").get<std::vector<int32_t>>();
  const formats::Recipe recipe = golden_recipe(expected.at("model").get<std::string>(),
                                               {"threads=1", "adapter=" + kForms + GetParam()});
  engine::Inference inference(recipe, runtime::open_model(recipe),
                              generate::score_shape(std::ssize(ids)));
  const auto logprobs =
      generate::log_probabilities(inference, ids, [](std::span<const float> /*logits*/) {});
  const auto wanted = expected.at("logprobs").get<std::vector<double>>();
  ASSERT_EQ(logprobs.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(logprobs[i], wanted[i], 2e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(Peft, AdapterForms, ::testing::ValuesIn(form_names()),
                         [](const auto& test) { return test.param; });

// What is said where the config of a form that has adapters of q_proj and v_proj names these
// modules in their place.
std::string refusal_of(const std::string& form, const nlohmann::json& changes) {
  const TemporaryFolder folder;
  std::filesystem::copy(kForms + form, folder / "adapter");
  nlohmann::json config = base::read_json_file(folder / "adapter/adapter_config.json");
  config.update(changes);
  folder.write("adapter/adapter_config.json", config.dump());
  const formats::Recipe recipe =
      golden_recipe(expected_forms().at(form).at("model").get<std::string>(),
                    {"threads=1", "adapter=" + (folder / "adapter").string()});
  return user_error_of([&] {
    const engine::Inference inference(recipe, runtime::open_model(recipe),
                                      generate::score_shape(4));
  });
}

std::string refusal_of_targets(const std::vector<std::string>& targets) {
  return refusal_of("rows", {{"target_modules", targets}});
}

// PEFT warns of missing keys and applies the rest.
TEST(AdapterTargets, ThatTheFileLacksAreRefusedWhereTheModelHasThem) {
  const std::string by_end = refusal_of_targets({"q_proj", "v_proj", "k_proj"});
  EXPECT_NE(by_end.find("has no 'model.layers.0.self_attn.k_proj', "
                        "'model.layers.1.self_attn.k_proj' (2 modules are missing), which its "
                        "adapter_config.json selects in this model"),
            std::string::npos)
      << by_end;
  const std::string whole =
      refusal_of_targets({"q_proj", "v_proj", "model.layers.1.mlp.down_proj"});
  EXPECT_NE(whole.find("has no 'model.layers.1.mlp.down_proj' (1 modules"), std::string::npos)
      << whole;
  for (const std::string name : {"lm_head", "embed_tokens"}) {
    const std::string table = refusal_of_targets({"q_proj", "v_proj", name});
    EXPECT_NE(table.find(name + "' (1 modules are missing)"), std::string::npos) << table;
  }
}

TEST(AdapterTargets, ThatLayersAndExpressionsSelectAreRefusedToo) {
  const std::string file = "adapter_model.safetensors: the adapter has no ";
  const std::string layers = refusal_of("patterns_dora", {{"layers_to_transform", {0, 1}}});
  EXPECT_NE(layers.find(file + "'model.layers.0.self_attn.q_proj', "
                               "'model.layers.0.self_attn.v_proj' (2 modules are missing), which "
                               "its adapter_config.json selects in this model"),
            std::string::npos)
      << layers;
  const std::string pattern =
      refusal_of("rows", {{"target_modules", R"(model\..*\.(q|k|v)_proj)"}});
  EXPECT_NE(pattern.find(file + "'model.layers.0.self_attn.k_proj'"), std::string::npos) << pattern;
  const std::string wrapped =
      refusal_of("wrapped_multimodal", {{"target_modules", R"(model\.language_model\..*_proj)"}});
  EXPECT_NE(wrapped.find(file + "'model.layers.0.self_attn.k_proj'"), std::string::npos) << wrapped;
  for (const char* all :
       {R"(model\..*\.(q|v)_proj)", R"(model\.layers\.[01]\..*[qv]_proj|vision.*)"})
    EXPECT_EQ(refusal_of("rows", {{"target_modules", all}}), "(no error)") << all;
}

// Those of another part of a larger model, and of experts, whose adapters PEFT keeps elsewhere.
TEST(AdapterTargets, OfNoModuleOfTheModelAreLeftOut) {
  EXPECT_EQ(refusal_of_targets({"q_proj", "v_proj", "fc1", "vision_tower.layers.0.q_proj"}),
            "(no error)");
}

// PEFT would take one adapter for both.
TEST(AdapterTargets, ThatAreTiedAndApartInTheFileAreRefused) {
  const nlohmann::json ensured = {{"ensure_weight_tying", true}};
  for (const char* form : {"patterns_embedding", "head_tied"})
    EXPECT_NE(refusal_of(form, ensured).find("the file does not hold both, as PEFT writes them"),
              std::string::npos)
        << form << ": " << refusal_of(form, ensured);
  EXPECT_NE(refusal_of("head_and_embedding_tied", ensured).find("holds others for each"),
            std::string::npos);
  for (const char* untied : {"rows", "head", "saved_embedding_tied"})
    EXPECT_EQ(refusal_of(untied, ensured), "(no error)") << untied;
}

// The new token's id, as a prompt would have it with the adapter of a form.
std::optional<int32_t> new_token_with(const std::string& form, int64_t rows = 300) {
  const TemporaryFolder folder;
  text::TinyTokenizer tokens;
  folder.write("model/tokenizer.json", tokens.document().dump());
  tokens.added.emplace_back("<new>");
  std::filesystem::copy(kForms + form, folder / "adapter");
  folder.write("adapter/tokenizer.json", tokens.document().dump());
  const formats::Recipe recipe = recipe_of(
      {"model=" + (folder / "model").string(), "adapter=" + (folder / "adapter").string()});
  models::ModelSource model{{}, folder / "model"};
  model.config.vocab_size = rows;
  return engine::open_tokenizer(recipe, model).id_of("<new>");
}

// Rows that the adapter brings, or that the model has to spare.
TEST(AdapterTokens, ComeWithTheAdapterWhereThereAreRowsForThem) {
  EXPECT_EQ(new_token_with("rows"), 258);
  EXPECT_EQ(new_token_with("patterns"), 258);
  EXPECT_EQ(new_token_with("patterns", 258), std::nullopt);
}

}  // namespace
}  // namespace snug::testing
