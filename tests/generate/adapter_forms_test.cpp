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
#include "formats/recipe/recipe.h"
#include "generate/prompt.h"
#include "generate/score.h"
#include "golden_recipe.h"
#include "runtime/loading/open_model.h"

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
  generate::Inference inference(recipe, runtime::open_model(recipe),
                                generate::score_shape(std::ssize(ids)));
  const auto logprobs =
      generate::log_probabilities(inference, ids, [](std::span<const float> /*logits*/) {});
  const auto wanted = expected.at("logprobs").get<std::vector<double>>();
  ASSERT_EQ(logprobs.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(logprobs[i], wanted[i], 2e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(Peft, AdapterForms, ::testing::ValuesIn(form_names()),
                         [](const auto& test) { return test.param; });

// The new token's id, as a prompt would have it with the adapter of a form.
std::optional<int32_t> new_token_with(const std::string& form) {
  const TemporaryFolder folder;
  text::TinyTokenizer tokens;
  folder.write("model/tokenizer.json", tokens.document().dump());
  tokens.added.emplace_back("<new>");
  std::filesystem::copy(kForms + form, folder / "adapter");
  folder.write("adapter/tokenizer.json", tokens.document().dump());
  const formats::Recipe recipe = recipe_of(
      {"model=" + (folder / "model").string(), "adapter=" + (folder / "adapter").string()});
  models::ModelSource model{{}, folder / "model"};
  model.config.vocab_size = 300;
  return generate::open_tokenizer(recipe, model).id_of("<new>");
}

TEST(AdapterTokens, ComeWithTheAdapterThatHasTheirRows) {
  EXPECT_EQ(new_token_with("rows"), 258);
  EXPECT_EQ(new_token_with("patterns"), std::nullopt);
}

}  // namespace
}  // namespace snug::testing
