// DoRA in whole steps: what recomputation and micro-batches must not change, and what dropout
// leaves of the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "adapter_step.h"
#include "backends/cpu/isa.h"

namespace snug::test {
namespace {

using passes::RecomputeMode;

constexpr int64_t kDoraRowTokens = AdapterStep::kRowTokens;

const std::string kModule = "model.layers.1.mlp.down_proj";

plan::TrainingSpec spec_of(double dropout, int64_t rows = 2) {
  plan::TrainingSpec spec;
  spec.compute = program::DType::f32;
  spec.rows = rows;
  spec.row_tokens = kDoraRowTokens;
  spec.accumulation = 2 / rows;
  spec.lora.dropout = dropout;
  spec.lora.row_tokens = kDoraRowTokens;
  spec.lora.seed = 5;
  return spec;
}

AdapterStep dora_step(plan::TrainingSpec spec) {
  return {"dora_q_down", "grouped_tied", std::move(spec)};
}

TEST(DoraSteps, RecomputationKeepsEveryBit) {
  for (const program::DType compute : {program::DType::f32, program::DType::bf16}) {
    if (compute == program::DType::bf16 &&
        !backends::cpu::has_bf16_products(backends::cpu::detect_isa()))
      continue;
    plan::TrainingSpec spec = spec_of(0.25);
    spec.compute = compute;
    const auto none = dora_step(spec).gradients();
    for (const RecomputeMode mode :
         {RecomputeMode::keep_all, RecomputeMode::gate_up, RecomputeMode::attention,
          RecomputeMode::all_but_attention, RecomputeMode::layer}) {
      spec.recompute = mode;
      EXPECT_EQ(dora_step(spec).gradients(), none);
    }
  }
}

TEST(DoraSteps, OneTimesTwoIsTwoTimesOne) {
  for (const double dropout : {0.0, 0.25}) {
    const auto whole = dora_step(spec_of(dropout, 2)).gradients();
    const auto parts = dora_step(spec_of(dropout, 1)).gradients();
    ASSERT_EQ(whole.size(), parts.size());
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_LT(relative_error(parts[i], whole[i]), 1e-6);
  }
}

// What mode gate_up makes again of a linear with magnitudes is its products, too: less is kept.
TEST(DoraSteps, RecomputationTakesLessMemory) {
  plan::TrainingSpec spec = spec_of(0);
  int64_t before = 0;
  for (const RecomputeMode mode :
       {RecomputeMode::layer, RecomputeMode::gate_up, RecomputeMode::keep_all}) {
    spec.recompute = mode;
    AdapterStep step = dora_step(spec);
    const auto& spaces = step.executor().job().layout.spaces;
    const int64_t bytes = spaces[static_cast<size_t>(program::Space::device)].arena_bytes;
    EXPECT_GT(bytes, before);
    before = bytes;
  }
}

// Where B is zero and magnitudes are the norms of the weights, a linear gives W (x - d) + W d,
// which is the model's, whatever dropout leaves out.
TEST(DoraSteps, DropoutLeavesAModelThatIsNotAdapted) {
  AdapterStep step = dora_step(spec_of(0.5));
  const float adapted = step.loss();
  for (const auto& trainable : step.executor().job().trainables) {
    if (!trainable.name.ends_with(".lora_magnitude_vector")) {
      if (trainable.name.ends_with(".lora_B.weight"))
        std::fill_n(step.values(trainable.name), trainable.shape.elements(), 0.0F);
      continue;
    }
    const std::string module = trainable.name.substr(0, trainable.name.rfind('.'));
    const backends::Buffer& weight = step.executor().tensor(module + ".weight");
    for (int64_t row = 0; row < weight.shape[0]; ++row) {
      double squares = 0;
      for (int64_t column = 0; column < weight.shape[1]; ++column)
        squares += std::pow(weight.as<const float>()[row * weight.shape[1] + column], 2);
      step.values(trainable.name)[row] = static_cast<float>(std::sqrt(squares));
    }
  }
  const formats::SafetensorsFile model(golden_folder("grouped_tied") + "/golden.safetensors");
  ASSERT_EQ(integers(model, "ids"), integers(step.golden(), "ids"));
  EXPECT_NEAR(step.loss(), floats(model, "loss")[0], 1e-5);
  EXPECT_GT(std::abs(adapted - floats(model, "loss")[0]), 1e-3);
}

// The loss falls as the gradient of magnitudes says, with the same mask.
TEST(DoraSteps, GradientsOfMagnitudesHoldWithDropout) {
  AdapterStep step = dora_step(spec_of(0.5));
  const std::string name = kModule + ".lora_magnitude_vector";
  step.loss();
  const std::vector<float> gradient = values_of(step.executor(), "gradient." + name);
  const std::vector<float> before = values_of(step.executor(), name);
  constexpr float kStep = 0.02F;
  const auto loss_at = [&](float factor) {
    for (size_t i = 0; i < before.size(); ++i) step.values(name)[i] = before[i] * factor;
    return static_cast<double>(step.loss());
  };
  double expected = 0;
  for (size_t i = 0; i < before.size(); ++i) expected += gradient[i] * before[i];
  const double found = (loss_at(1 + kStep) - loss_at(1 - kStep)) / (2 * kStep);
  EXPECT_NEAR(found, expected, 0.02 * std::abs(expected) + 1e-4);
  EXPECT_GT(std::abs(expected), 5e-3);
}

}  // namespace
}  // namespace snug::test
