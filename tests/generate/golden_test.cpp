// Scores against what transformers and PEFT compute in fp32.
#include <optional>
#include <ostream>

#include "base/temporary_folder.h"
#include "comparison.h"
#include "generate/score.h"
#include "golden_recipe.h"
#include "runtime/quantize_folder.h"

namespace snug::testing {
namespace {

struct Case {
  const char* name;
  const char* model;                   // folder of goldens that holds it
  const char* adapter = "";            // folder of goldens that holds one, if any
  std::optional<bool> double_quant{};  // of a base quantised from fp32, if it is
  bool has_loss = true;
  const char* stored = "";  // folder that transformers quantised, in the model's place
};

std::ostream& operator<<(std::ostream& stream, const Case& c) { return stream << c.name; }

// Reading rounds to the compute type before it quantises: in bf16 a base quantised from fp32 is a
// folder that holds those codes, made in `folder`.
formats::Recipe recipe_of_case(const Case& c, bool bf16, const TemporaryFolder& folder) {
  std::vector<std::string> words{"threads=2", bf16 ? "compute_dtype=bf16" : "compute_dtype=fp32"};
  if (c.double_quant && bf16) {
    words.push_back("model=" + (folder / "model").string());
    runtime::FolderQuantizer(kGoldens + c.model + "/model",
                             {.double_quant = *c.double_quant, .keep_fp32 = true})
        .write(folder / "model");
  } else if (c.double_quant) {
    words.emplace_back("load_in_4bit=true");
    words.emplace_back(*c.double_quant ? "double_quant=true" : "double_quant=false");
  }
  if (*c.stored != '\0') words.push_back("model=" + kGoldens + c.stored);
  if (*c.adapter != '\0') words.push_back("adapter=" + kGoldens + c.adapter + "/adapter");
  return golden_recipe(c.model, words);
}

// The bound in bf16 holds every rounding to it, that of the weights too: transformers' own logits
// in bf16 are up to 1.6e-2 off. Without a family's window, norms or rope factors it is 0.18 and
// more.
void expect_golden(const Case& c, bool bf16) {
  const TemporaryFolder folder;
  const formats::Recipe recipe = recipe_of_case(c, bf16, folder);
  const formats::SafetensorsFile golden(kGoldens + c.name + "/golden.safetensors");
  const auto ids = golden_values<int32_t>(golden, "ids");
  const auto expected = golden_values<float>(golden, "logits");
  const auto length = static_cast<size_t>(golden.at("ids").shape[1]);

  generate::Inference inference(recipe, runtime::open_model(recipe),
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
  EXPECT_LT(relative_error(logits, expected), bf16 ? 2e-2 : 1e-4);
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
  const double golden_loss = golden_values<float>(golden, "loss").front();
  EXPECT_NEAR(loss / static_cast<double>(trained), golden_loss, bf16 ? 1e-3 * golden_loss : 1e-5);
}

class Golden : public ::testing::TestWithParam<Case> {};

TEST_P(Golden, LogitsAndLoss) { expect_golden(GetParam(), false); }

TEST_P(Golden, LogitsAndLossInBf16) {
  if (!backends::test::cpu_must_multiply_bf16())
    GTEST_SKIP() << "the processor does not multiply bf16";
  expect_golden(GetParam(), true);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Golden,
    ::testing::Values(Case{"basic", "basic"}, Case{"grouped_tied", "grouped_tied"},
                      Case{"biases", "biases"}, Case{"head_dim", "head_dim"},
                      Case{"rope_llama3", "rope_llama3"}, Case{"rope_linear", "rope_linear"},
                      Case{"mistral", "mistral"}, Case{"qwen2", "qwen2"}, Case{"qwen3", "qwen3"},
                      Case{"phi3", "phi3"}, Case{"phi3_long", "phi3_long"},
                      Case{"phi3_short", "phi3_short"}, Case{"lora_phi3", "phi3", "lora_phi3"},
                      Case{"sharded_fp16", "sharded_fp16", "", std::nullopt, false},
                      Case{"sharded_bf16", "sharded_bf16", "", std::nullopt, false},
                      Case{"lora_all_linear", "grouped_tied", "lora_all_linear"},
                      Case{"lora_qv_rslora", "grouped_tied", "lora_qv_rslora"},
                      Case{"stored_double", "", "", std::nullopt, true, "nf4/double"},
                      Case{"stored_plain", "", "", std::nullopt, true, "nf4/plain"},
                      Case{"qlora_nf4", "grouped_tied", "lora_all_linear", false},
                      Case{"qlora_nf4_dq", "grouped_tied", "lora_all_linear", true}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace snug::testing
