// Scores against what transformers and PEFT compute: logits within 1e-4, loss within 1e-5.
#include <ostream>

#include "generate/score.h"
#include "golden_recipe.h"

namespace snug::testing {
namespace {

struct Case {
  const char* name;
  const char* model;  // folder of goldens that holds it
  bool adapted = false;
  bool has_loss = true;
};

std::ostream& operator<<(std::ostream& stream, const Case& c) { return stream << c.name; }

class Golden : public ::testing::TestWithParam<Case> {};

TEST_P(Golden, LogitsAndLoss) {
  const Case c = GetParam();
  std::vector<std::string> words{"threads=2"};
  if (c.adapted) words.push_back("adapter=" + kGoldens + c.name + "/adapter");
  const formats::Recipe recipe = golden_recipe(c.model, words);
  const formats::SafetensorsFile golden(kGoldens + c.name + "/golden.safetensors");
  const auto ids = golden_values<int32_t>(golden, "ids");
  const auto expected = golden_values<float>(golden, "logits");
  const auto length = static_cast<size_t>(golden.at("ids").shape[1]);

  generate::Inference inference(recipe, generate::open_model(recipe),
                                generate::score_shape(static_cast<int64_t>(length)));
  std::vector<float> logits;
  std::vector<double> logprobs;  // a row: of tokens 1 to length - 1
  for (size_t row = 0; row < ids.size(); row += length) {
    const auto scores = generate::log_probabilities(
        inference, std::span(ids).subspan(row, length), [&](std::span<const float> logit) {
          logits.insert(logits.end(), logit.begin(), logit.end());
        });
    ASSERT_EQ(scores.size(), length - 1);
    logprobs.insert(logprobs.end(), scores.begin(), scores.end());
    logprobs.push_back(0);  // the last position has no target
  }
  EXPECT_LT(relative_error(logits, expected), 1e-4);
  if (!c.has_loss) return;

  const auto targets = golden_values<int32_t>(golden, "targets");
  double loss = 0;
  int64_t trained = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    ASSERT_EQ(targets[i], ids[i + 1]);
    loss -= logprobs[i];
    ++trained;
  }
  EXPECT_NEAR(loss / static_cast<double>(trained), golden_values<float>(golden, "loss").front(),
              1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Golden,
    ::testing::Values(Case{"basic", "basic"}, Case{"grouped_tied", "grouped_tied"},
                      Case{"biases", "biases"}, Case{"head_dim", "head_dim"},
                      Case{"rope_llama3", "rope_llama3"}, Case{"rope_linear", "rope_linear"},
                      Case{"mistral", "mistral"}, Case{"qwen2", "qwen2"}, Case{"qwen3", "qwen3"},
                      Case{"phi3", "phi3"}, Case{"phi3_long", "phi3_long"},
                      Case{"phi3_short", "phi3_short"}, Case{"lora_phi3", "phi3", true},
                      Case{"sharded_fp16", "sharded_fp16", false, false},
                      Case{"sharded_bf16", "sharded_bf16", false, false},
                      Case{"lora_all_linear", "grouped_tied", true},
                      Case{"lora_qv_rslora", "grouped_tied", true}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace snug::testing
