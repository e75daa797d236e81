// LLaMA-Adapter in whole steps: what recomputation and micro-batches must not change, what gates of
// zero leave, and a base in 4 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "adapter_step.h"
#include "backends/cpu/isa.h"
#include "models/forward/prompt_names.h"

namespace snug::test {
namespace {

using passes::RecomputeMode;

constexpr int64_t kPromptRowTokens = AdapterStep::kRowTokens;

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
  spec.row_tokens = kPromptRowTokens;
  spec.accumulation = 2 / rows;
  return spec;
}

AdapterStep prompt_step(const PromptCase& of, plan::TrainingSpec spec) {
  return {of.golden, of.model, std::move(spec)};
}

TEST(PromptSteps, RecomputationKeepsEveryBit) {
  for (const PromptCase& of : kCases)
    for (const program::DType compute : {program::DType::f32, program::DType::bf16}) {
      if (compute == program::DType::bf16 &&
          !backends::cpu::has_bf16_products(backends::cpu::detect_isa()))
        continue;
      SCOPED_TRACE(of.golden);
      plan::TrainingSpec spec = spec_of();
      spec.compute = compute;
      const auto none = prompt_step(of, spec).gradients();
      for (const RecomputeMode mode :
           {RecomputeMode::keep_all, RecomputeMode::gate_up, RecomputeMode::attention,
            RecomputeMode::all_but_attention, RecomputeMode::layer}) {
        spec.recompute = mode;
        EXPECT_EQ(prompt_step(of, spec).gradients(), none);
      }
    }
}

TEST(PromptSteps, OneTimesTwoIsTwoTimesOne) {
  for (const PromptCase& of : kCases) {
    const auto whole = prompt_step(of, spec_of(2)).gradients();
    const auto parts = prompt_step(of, spec_of(1)).gradients();
    ASSERT_EQ(whole.size(), parts.size());
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_LT(relative_error(parts[i], whole[i]), 1e-5);
  }
}

// And prompts then have no gradient, but gates do. Of version 2 more must be as it begins.
TEST(PromptSteps, GatesOfZeroLeaveTheModel) {
  for (const PromptCase& of : kCases) {
    SCOPED_TRACE(of.golden);
    AdapterStep step = prompt_step(of, spec_of());
    const float adapted = step.loss();
    const auto fill = [&](const program::Tensor& tensor, float value) {
      std::fill_n(step.values(tensor.name), tensor.shape.elements(), value);
    };
    const formats::SafetensorsFile model(golden_folder(of.model) + "/golden.safetensors");
    const formats::SafetensorsFile weights(golden_folder(of.model) + "/model/model.safetensors");
    for (const auto& trainable : step.executor().job().trainables) {
      if (models::is_gate(trainable.name) || models::is_adjusting_bias(trainable.name))
        fill(trainable, 0.0F);
      else if (models::is_adjusting_scale(trainable.name))
        fill(trainable, 1.0F);
      else if (!models::is_prompt(trainable.name))
        std::ranges::copy(floats(weights, trainable.name), step.values(trainable.name));
    }
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
      AdapterStep plain = prompt_step(of, spec_of());
      plan::TrainingSpec spec = spec_of();
      spec.quantization.emplace();
      spec.quantization->nested = nested;
      AdapterStep in_4_bits = prompt_step(of, spec);
      const float loss = plain.loss();
      EXPECT_NEAR(in_4_bits.loss(), loss, 0.05 * loss);
      EXPECT_NE(in_4_bits.loss(), loss);
    }
}

}  // namespace
}  // namespace snug::test
