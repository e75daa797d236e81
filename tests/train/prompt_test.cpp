// LLaMA-Adapter in whole steps: what recomputation and micro-batches must not change, what gates of
// zero leave, and a base in 4 bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/isa.h"
#include "golden_case.h"
#include "models/prompt_names.h"

namespace snug::test {
namespace {

using passes::RecomputeMode;
using program::ProgramName;

constexpr int64_t kRowTokens = 33;

struct PromptCase {
  const char* golden;
  const char* model;
};

constexpr PromptCase kCases[]{{"prompt_layer", "grouped_tied"},
                              {"prompt_head", "qwen3"},
                              {"prompt_gpt_neox", "gpt_neox_in_turn"},
                              {"prompt_v2_gpt_neox", "gpt_neox_in_turn"}};

plan::TrainingSpec spec_of(int64_t rows = 2) {
  plan::TrainingSpec spec;
  spec.compute = program::DType::f32;
  spec.rows = rows;
  spec.row_tokens = kRowTokens;
  spec.accumulation = 2 / rows;
  return spec;
}

class PromptStep {
 public:
  PromptStep(const PromptCase& of, plan::TrainingSpec spec)
      : golden_(golden_folder(of.golden) + "/golden.safetensors"),
        loaded_("cpu", golden_folder(std::string(of.model) + "/model"),
                golden_folder(std::string(of.golden) + "/adapter"), std::move(spec)) {}

  float loss() {
    const auto ids = integers(golden_, "ids");
    const auto targets = integers(golden_, "targets");
    const plan::TrainingSpec& spec = loaded_.spec();
    executor().set_input("inverse_tokens", 1.0F / static_cast<float>(count_trained(targets)));
    for (int64_t micro = 0; micro < spec.accumulation; ++micro) {
      const auto program = micro == 0 ? ProgramName::micro_first : ProgramName::micro_next;
      const auto begin = micro * spec.rows * kRowTokens;
      const auto end = begin + spec.rows * kRowTokens;
      loaded_.put_batch(program, {ids.begin() + begin, ids.begin() + end},
                        {targets.begin() + begin, targets.begin() + end});
      executor().run(program);
    }
    return values_of(executor(), "loss")[0];
  }

  std::vector<std::vector<float>> gradients() {
    loss();
    std::vector<std::vector<float>> found;
    for (const auto& trainable : executor().job().trainables)
      found.push_back(values_of(executor(), "gradient." + trainable.name));
    return found;
  }

  runtime::Executor& executor() { return loaded_.executor(); }

 private:
  formats::SafetensorsFile golden_;
  LoadedCase loaded_;
};

TEST(PromptSteps, RecomputationKeepsEveryBit) {
  for (const PromptCase& of : kCases)
    for (const program::DType compute : {program::DType::f32, program::DType::bf16}) {
      if (compute == program::DType::bf16 &&
          !backends::cpu::has_bf16_products(backends::cpu::detect_isa()))
        continue;
      SCOPED_TRACE(of.golden);
      plan::TrainingSpec spec = spec_of();
      spec.compute = compute;
      const auto none = PromptStep(of, spec).gradients();
      for (const RecomputeMode mode :
           {RecomputeMode::keep_all, RecomputeMode::gate_up, RecomputeMode::attention,
            RecomputeMode::all_but_attention, RecomputeMode::layer}) {
        spec.recompute = mode;
        EXPECT_EQ(PromptStep(of, spec).gradients(), none);
      }
    }
}

TEST(PromptSteps, OneTimesTwoIsTwoTimesOne) {
  for (const PromptCase& of : kCases) {
    const auto whole = PromptStep(of, spec_of(2)).gradients();
    const auto parts = PromptStep(of, spec_of(1)).gradients();
    ASSERT_EQ(whole.size(), parts.size());
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_LT(relative_error(parts[i], whole[i]), 1e-5);
  }
}

// And prompts then have no gradient, but gates do.
TEST(PromptSteps, GatesOfZeroLeaveTheModel) {
  for (const PromptCase& of : kCases) {
    SCOPED_TRACE(of.golden);
    PromptStep step(of, spec_of());
    const float adapted = step.loss();
    for (const auto& trainable : step.executor().job().trainables)
      if (models::is_gate(trainable.name))
        std::fill_n(step.executor().tensor(trainable.name).as<float>(), trainable.shape.elements(),
                    0.0F);
    const formats::SafetensorsFile model(golden_folder(of.model) + "/golden.safetensors");
    EXPECT_NEAR(step.loss(), floats(model, "loss")[0], 1e-5);
    EXPECT_GT(std::abs(adapted - floats(model, "loss")[0]), 1e-3);
    for (const auto& trainable : step.executor().job().trainables) {
      const auto gradient = values_of(step.executor(), "gradient." + trainable.name);
      const bool is_zero = std::ranges::all_of(gradient, [](float value) { return value == 0; });
      EXPECT_EQ(is_zero, models::is_prompt(trainable.name)) << trainable.name;
    }
  }
}

// Keys and values of prompts are products of the codes' values, as those of tokens are.
TEST(PromptSteps, ABaseIn4BitsIsNearTheModel) {
  for (const PromptCase& of : kCases)
    for (const bool nested : {false, true}) {
      SCOPED_TRACE(of.golden);
      PromptStep plain(of, spec_of());
      plan::TrainingSpec spec = spec_of();
      spec.quantization.emplace();
      spec.quantization->nested = nested;
      PromptStep in_4_bits(of, spec);
      const float loss = plain.loss();
      EXPECT_NEAR(in_4_bits.loss(), loss, 0.05 * loss);
      EXPECT_NE(in_4_bits.loss(), loss);
    }
}

}  // namespace
}  // namespace snug::test
