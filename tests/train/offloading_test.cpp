// What is kept of layers and waits on the host changes no bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "golden_case.h"

namespace snug::test {
namespace {

constexpr int64_t kRowTokens = 64;

std::vector<int32_t> random_ids(uint32_t stream) {
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < kRowTokens; ++i)
    ids.push_back(static_cast<int32_t>(base::philox({i, stream, 0, 0}, {7, 7})[0] % 137));
  return ids;
}

struct Trained {
  std::vector<std::vector<float>> values;  // loss and gradients, of each step
  int64_t transfers = 0;                   // in a micro-batch
};

// Three steps of two micro-batches: a backend that records does so in the second.
Trained run_steps(const std::string& backend, passes::RecomputeMode mode, bool offloads) {
  plan::TrainingSpec spec;
  spec.method = plan::MethodKind::full;
  spec.compute = program::DType::f32;
  spec.rows = 1;
  spec.row_tokens = kRowTokens;
  spec.accumulation = 2;
  spec.recompute = mode;
  spec.activation_offloading = offloads;
  LoadedCase loaded(backend, golden_folder("grouped_tied/model"), "", spec);
  auto& executor = loaded.executor();
  executor.set_scalar("inverse_tokens", 0.5F / static_cast<float>(kRowTokens));
  Trained run;
  for (uint32_t step = 0; step < 3; ++step) {
    uint32_t stream = 10 * step;
    for (const char* program : {"micro_first", "micro_next"}) {
      loaded.put_batch(program, random_ids(stream), random_ids(stream + 1));
      executor.run(program);
      stream += 2;
    }
    run.values.push_back(values_of(executor, "loss"));
    for (const program::Tensor& trainable : executor.job().trainables)
      run.values.push_back(values_of(executor, "gradient." + trainable.name));
  }
  run.transfers = std::ranges::count(executor.job().find("micro_next")->operations,
                                     program::Kind::transfer, &program::Operation::kind);
  return run;
}

class Offloading : public testing::TestWithParam<std::string> {};

TEST_P(Offloading, ChangesNoBit) {
  if (!has_device(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  // Of two of three layers the input, or also both that attention writes, there and back.
  for (const auto& [mode, transfers] : {std::pair{passes::RecomputeMode::layer, 4},
                                        {passes::RecomputeMode::all_but_attention, 12}}) {
    const Trained kept = run_steps(GetParam(), mode, false);
    const Trained offloaded = run_steps(GetParam(), mode, true);
    ASSERT_EQ(offloaded.values.size(), kept.values.size());
    for (size_t i = 0; i < kept.values.size(); ++i)
      EXPECT_EQ(offloaded.values[i], kept.values[i]) << "value " << i;
    EXPECT_EQ(kept.transfers, 0);
    EXPECT_EQ(offloaded.transfers, transfers);
  }
}

INSTANTIATE_TEST_SUITE_P(, Offloading, testing::ValuesIn(golden_backends()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace snug::test
