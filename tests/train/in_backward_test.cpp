// An update in the backward pass gives the bits of one after it, and its norm, and leaves alone
// what has no finite gradient.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../backends/comparison.h"
#include "base/random.h"
#include "golden_case.h"

namespace snug::test {
namespace {

constexpr int64_t kRows = 2;
constexpr int64_t kRowTokens = 12;

struct Scenario {
  const char* backend;
  program::DType compute;
  methods::OptimizerKind optimizer;
  bool lora;
  passes::RecomputeMode recompute = passes::RecomputeMode::none;
  std::optional<passes::QuantizeOptions> quantization{};
};

struct State {
  std::map<std::string, std::vector<std::byte>> tensors;  // all that lives from load to the end
  std::vector<float> norms;                               // of each step
};

std::vector<int32_t> random_ids(uint32_t stream) {
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < kRows * kRowTokens; ++i)
    ids.push_back(static_cast<int32_t>(base::philox({i, stream, 0, 0}, {7, 7})[0] % 137));
  return ids;
}

State state_of(runtime::Executor& executor) {
  State state;
  for (const program::Program& program : executor.job().programs)
    for (const program::Tensor& tensor : program.tensors) {
      if (tensor.lifetime != program::Lifetime::run || tensor.is_view()) continue;
      const auto& buffer = executor.tensor(tensor.name);
      state.tensors[tensor.name].assign(buffer.data, buffer.data + buffer.bytes());
    }
  return state;
}

std::unique_ptr<LoadedCase> load(const Scenario& run, bool in_backward) {
  plan::TrainingSpec spec;
  spec.method = methods::MethodKind::full;
  spec.compute = run.compute;
  spec.rows = kRows;
  spec.row_tokens = kRowTokens;
  spec.recompute = run.recompute;
  spec.lora.row_tokens = kRowTokens;
  spec.update.optimizer = run.optimizer;
  if (methods::optimizer_of(run.optimizer).narrow_gradients) spec.update.gradient = run.compute;
  spec.update.weight_decay = 0.1;
  spec.update.max_grad_norm = 0;
  spec.update_in_backward = in_backward;
  spec.quantization = run.quantization;
  return std::make_unique<LoadedCase>(run.backend, golden_folder("grouped_tied/model"),
                                      run.lora ? golden_folder("lora_all_linear/adapter") : "",
                                      spec);
}

State trained(const Scenario& run, bool in_backward, float inverse_tokens) {
  const auto loaded = load(run, in_backward);
  auto& executor = loaded->executor();
  std::vector<float> norms;
  for (uint32_t step = 1; step <= 3; ++step) {
    executor.set_input("inverse_tokens", inverse_tokens);
    executor.set_input("learning_rate", 1e-2F);
    if (executor.has("step")) executor.set_input("step", static_cast<int32_t>(step));
    loaded->put_batch(program::ProgramName::micro_first, random_ids(2 * step),
                      random_ids(2 * step + 1));
    executor.run(program::ProgramName::micro_first);
    executor.run(program::ProgramName::update);
    norms.push_back(executor.result<float>("gradient_norm"));
  }
  State state = state_of(executor);
  state.norms = norms;
  return state;
}

void expect_same(const Scenario& run) {
  SCOPED_TRACE(std::string(run.backend) + (run.lora ? ", lora, " : ", full, ") +
               std::string(base::word_of(run.optimizer)));
  constexpr float kInverseTokens = 1.0F / (kRows * kRowTokens);
  const State after = trained(run, false, kInverseTokens);
  const State within = trained(run, true, kInverseTokens);
  EXPECT_EQ(after.tensors, within.tensors);
  for (size_t i = 0; i < after.norms.size(); ++i) {
    EXPECT_GT(after.norms[i], 0);
    EXPECT_NEAR(within.norms[i], after.norms[i], 1e-5F * after.norms[i]);
  }
  EXPECT_NE(after.tensors, state_of(load(run, false)->executor()).tensors) << "nothing trained";
}

using methods::OptimizerKind;
using program::DType;

TEST(InBackward, GivesTheSameBitsInFp32) {
  for (const bool lora : {false, true})
    for (const OptimizerKind optimizer :
         {OptimizerKind::adamw, OptimizerKind::adamw_8bit, OptimizerKind::lion,
          OptimizerKind::adafactor, OptimizerKind::muon})
      expect_same({"cpu", DType::f32, optimizer, lora});
}

std::vector<const char*> bf16_backends() {
  if (backends::test::cpu_must_multiply_bf16()) return {"reference", "cpu"};
  return {"reference"};
}

TEST(InBackward, GivesTheSameBitsInBf16) {
  for (const char* backend : bf16_backends())
    for (const bool lora : {false, true})
      for (const OptimizerKind optimizer :
           {OptimizerKind::adamw, OptimizerKind::adamw_bf16, OptimizerKind::adamw_8bit,
            OptimizerKind::lion, OptimizerKind::adafactor, OptimizerKind::muon})
        expect_same({backend, DType::bf16, optimizer, lora});
}

// Not on the reference, which multiplies codes at any number of rows: then products are joined in
// one form of the program alone.
TEST(InBackward, GivesTheSameBitsOnAQuantisedBase) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    if (compute == DType::bf16 && !backends::test::cpu_must_multiply_bf16()) continue;
    for (const bool nested : {false, true})
      expect_same({"cpu", compute, OptimizerKind::adamw, true, passes::RecomputeMode::none,
                   passes::QuantizeOptions{.nested = nested, .kept = {}}});
  }
}

TEST(InBackward, GivesTheSameBitsWhateverIsRecomputed) {
  for (const auto mode : {passes::RecomputeMode::gate_up, passes::RecomputeMode::attention,
                          passes::RecomputeMode::all_but_attention, passes::RecomputeMode::layer})
    for (const bool lora : {false, true})
      expect_same({"cpu", DType::f32, OptimizerKind::adamw_8bit, lora, mode});
}

TEST(InBackward, WhatIsNotFiniteMovesNothingAndIsReported) {
  const Scenario run{"cpu", DType::f32, OptimizerKind::adamw_8bit, false};
  const State bad = trained(run, true, NAN);
  EXPECT_EQ(bad.tensors, state_of(load(run, true)->executor()).tensors);
  EXPECT_FALSE(std::isfinite(bad.norms[0]));
}

}  // namespace
}  // namespace snug::test
