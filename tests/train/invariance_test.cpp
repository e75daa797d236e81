// What must not change the numbers: the split of a step into micro-batches (with dropout too),
// packing, recomputation, and running again.
#include <gtest/gtest.h>

#include <array>

#include "backends/cpu/isa.h"
#include "base/random.h"
#include "golden_case.h"
#include "runtime/saving/adapter.h"

namespace snug::test {
namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kRowTokens = 12;

std::vector<int32_t> random_ids(uint32_t stream, int64_t count, int32_t below) {
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(base::philox({i, stream, 0, 0}, {7, 7})[0] %
                                       static_cast<uint32_t>(below)));
  return ids;
}

// Gradients of all trainables after one step of eight rows, `rows` a micro-batch.
std::vector<std::vector<float>> step_gradients(int64_t rows, double dropout,
                                               const passes::RecomputeModes& modes,
                                               program::DType compute = program::DType::f32) {
  plan::TrainingSpec spec;
  spec.compute = compute;
  spec.rows = rows;
  spec.row_tokens = kRowTokens;
  spec.accumulation = kRows / rows;
  spec.recompute = modes;
  spec.lora.dropout = dropout;
  spec.neftune_alpha = 20 * dropout;  // drawn by the same rule
  spec.lora.row_tokens = kRowTokens;
  spec.lora.seed = 11;
  LoadedCase loaded("cpu", golden_folder("grouped_tied/model"),
                    golden_folder("lora_all_linear/adapter"), spec);
  auto& executor = loaded.executor();
  const auto ids = random_ids(1, kRows * kRowTokens, 137);
  auto targets = random_ids(2, kRows * kRowTokens, 137);
  for (size_t i = 0; i < targets.size(); i += 3) targets[i] = -1;
  executor.set_input("inverse_tokens", 1.0F / static_cast<float>(count_trained(targets)));
  for (int64_t micro = 0; micro < spec.accumulation; ++micro) {
    const auto program =
        micro == 0 ? program::ProgramName::micro_first : program::ProgramName::micro_next;
    const auto begin = micro * rows * kRowTokens;
    const auto end = begin + rows * kRowTokens;
    loaded.put_batch(program, {ids.begin() + begin, ids.begin() + end},
                     {targets.begin() + begin, targets.begin() + end});
    if (executor.has("random"))
      executor.set_input("random", std::array<int32_t, 2>{3, static_cast<int32_t>(micro * rows)});
    executor.run(program);
  }
  std::vector<std::vector<float>> gradients;
  for (const auto& trainable : executor.job().trainables) {
    const auto& buffer = executor.tensor("gradient." + trainable.name);
    gradients.emplace_back(buffer.as<float>(), buffer.as<float>() + buffer.elements());
  }
  return gradients;
}

void expect_close(const std::vector<std::vector<float>>& a,
                  const std::vector<std::vector<float>>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_LT(relative_error(a[i], b[i]), tolerance) << "trainable " << i;
}

TEST(Invariance, OneTimesEightIsEightTimesOne) {
  for (const double dropout : {0.0, 0.25}) {
    const auto whole = step_gradients(8, dropout, passes::RecomputeMode::none);
    expect_close(step_gradients(1, dropout, passes::RecomputeMode::none), whole, 1e-6);
    expect_close(step_gradients(4, dropout, passes::RecomputeMode::layer), whole, 1e-6);
  }
}

TEST(Invariance, DropoutDropsSomething) {
  const auto without = step_gradients(8, 0.0, passes::RecomputeMode::none);
  const auto with = step_gradients(8, 0.25, passes::RecomputeMode::none);
  EXPECT_GT(relative_error(with[0], without[0]), 1e-2);
}

TEST(Invariance, RecomputationKeepsEveryBit) {
  const auto none = step_gradients(2, 0.25, passes::RecomputeMode::none);
  for (const auto mode : {passes::RecomputeMode::keep_all, passes::RecomputeMode::gate_up,
                          passes::RecomputeMode::attention,
                          passes::RecomputeMode::all_but_attention, passes::RecomputeMode::layer})
    EXPECT_EQ(step_gradients(2, 0.25, mode), none);
}

TEST(Invariance, LayersOfSeveralModesKeepEveryBit) {
  using Mode = passes::RecomputeMode;
  constexpr std::array kModes{Mode::keep_all,          Mode::none, Mode::gate_up, Mode::attention,
                              Mode::all_but_attention, Mode::layer};
  const auto none = step_gradients(2, 0.25, Mode::none);
  for (const Mode first : kModes)
    for (const Mode second : kModes)
      EXPECT_EQ(step_gradients(2, 0.25, passes::RecomputeModes({first, second, first})), none);
}

TEST(Invariance, RecomputationKeepsEveryBitOfBf16) {
  if (!backends::cpu::has_bf16_products(backends::cpu::detect_isa()))
    GTEST_SKIP() << "the processor has no bf16 products";
  using Mode = passes::RecomputeMode;
  const auto none = step_gradients(2, 0.25, Mode::none, program::DType::bf16);
  for (const auto mode :
       {Mode::keep_all, Mode::gate_up, Mode::attention, Mode::all_but_attention, Mode::layer})
    EXPECT_EQ(step_gradients(2, 0.25, mode, program::DType::bf16), none);
}

TEST(Invariance, TheSameSeedGivesTheSameBits) {
  EXPECT_EQ(step_gradients(4, 0.25, passes::RecomputeMode::none),
            step_gradients(4, 0.25, passes::RecomputeMode::none));
}

}  // namespace
}  // namespace snug::test
