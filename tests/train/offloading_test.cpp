// What lies in the host's memory, activations, weights or optimizer state, and where weights are
// updated, changes no bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "backends/cpu/isa.h"
#include "base/random.h"
#include "golden_case.h"

namespace snug::test {
namespace {

constexpr int64_t kOffloadedRowTokens = 32;

std::vector<int32_t> random_ids(uint32_t stream) {
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < kOffloadedRowTokens; ++i)
    ids.push_back(static_cast<int32_t>(base::philox({i, stream, 0, 0}, {7, 7})[0] % 137));
  return ids;
}

struct Trained {
  std::vector<std::vector<float>> values;  // loss and gradients, of each step
  int64_t transfers = 0;                   // in a micro-batch
};

struct Method {
  const char* name;
  const char* adapter;  // empty: all weights train
  std::optional<passes::QuantizeOptions> quantization;
  int64_t layers;  // of three, whose inputs the backward pass reads and which are not the last
  int64_t attentions = 2;  // whose outputs it reads, likewise
};

// Where the first layer trains nothing but an adapter, its input is made again of the tokens.
const std::vector<Method> kMethods{
    {"full", "", std::nullopt, 2},
    {"lora", "lora_all_linear/adapter", std::nullopt, 1},
    {"qlora", "lora_all_linear/adapter", passes::QuantizeOptions{.nested = true, .kept = {}}, 1},
    {"adapter", "prompt_layer/adapter", std::nullopt, 1, 1}};

// Three steps of two micro-batches: a backend that records does so in the second.
Trained run_steps(const std::string& backend, const Method& method, passes::RecomputeMode mode,
                  bool offloads) {
  plan::TrainingSpec spec;
  spec.method = methods::MethodKind::full;
  spec.quantization = method.quantization;
  spec.lora.dropout = 0.25;
  spec.lora.row_tokens = kOffloadedRowTokens;
  spec.compute = program::DType::f32;
  spec.rows = 1;
  spec.row_tokens = kOffloadedRowTokens;
  spec.accumulation = 2;
  spec.recompute = mode;
  spec.activation_offloading = offloads;
  LoadedCase loaded(backend, golden_folder("grouped_tied/model"),
                    *method.adapter == 0 ? "" : golden_folder(method.adapter), spec);
  auto& executor = loaded.executor();
  executor.set_input("inverse_tokens", 0.5F / static_cast<float>(kOffloadedRowTokens));
  Trained run;
  for (uint32_t step = 0; step < 3; ++step) {
    uint32_t stream = 10 * step;
    for (const auto program :
         {program::ProgramName::micro_first, program::ProgramName::micro_next}) {
      if (executor.has("random"))
        executor.set_input("random", std::array<int32_t, 2>{static_cast<int32_t>(step), 0});
      loaded.put_batch(program, random_ids(stream), random_ids(stream + 1));
      executor.run(program);
      stream += 2;
    }
    run.values.push_back(values_of(executor, "loss"));
    for (const program::Tensor& trainable : executor.job().trainables)
      run.values.push_back(values_of(executor, "gradient." + trainable.name));
  }
  run.transfers =
      std::ranges::count(executor.job().find(program::ProgramName::micro_next)->operations,
                         program::Kind::transfer, &program::Operation::kind);
  return run;
}

class Offloading : public ::testing::TestWithParam<std::string> {};

// Of each layer that is offloaded the input, or also both that attention writes, there and back.
// What attention writes is kept of the first layer in any method, but for prompts, which it has
// none of.
TEST_P(Offloading, ChangesNoBit) {
  if (!has_device(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  for (const Method& method : kMethods)
    for (const auto mode :
         {passes::RecomputeMode::layer, passes::RecomputeMode::all_but_attention}) {
      SCOPED_TRACE(method.name);
      const Trained kept = run_steps(GetParam(), method, mode, false);
      const Trained offloaded = run_steps(GetParam(), method, mode, true);
      ASSERT_EQ(offloaded.values.size(), kept.values.size());
      for (size_t i = 0; i < kept.values.size(); ++i)
        EXPECT_EQ(offloaded.values[i], kept.values[i]) << "value " << i;
      const int64_t attentions = mode == passes::RecomputeMode::layer ? 0 : method.attentions;
      EXPECT_EQ(kept.transfers, 0);
      EXPECT_EQ(offloaded.transfers, 2 * (method.layers + 2 * attentions));
    }
}

struct Update {
  const char* name;
  methods::OptimizerKind optimizer;
  bool in_backward;
  program::DType type = program::DType::f32;  // of what is computed, and of gradients
};

// Three steps; one micro-batch each where weights are updated in the backward pass, else two.
std::vector<std::vector<float>> train(const std::string& backend, const Method& method,
                                      const Update& update, const passes::StreamOptions& streaming,
                                      bool offloads_activations = false) {
  plan::TrainingSpec spec;
  spec.method = methods::MethodKind::full;
  spec.quantization = method.quantization;
  spec.lora.row_tokens = kOffloadedRowTokens;
  spec.compute = update.type;
  spec.update.gradient = update.type;
  spec.rows = 1;
  spec.row_tokens = kOffloadedRowTokens;
  spec.accumulation = update.in_backward ? 1 : 2;
  spec.update.optimizer = update.optimizer;
  spec.update.weight_decay = 0.1;
  spec.update.max_grad_norm = update.in_backward ? 0.0 : 0.5;
  spec.update_in_backward = update.in_backward;
  if (offloads_activations) spec.recompute = passes::RecomputeMode::layer;
  spec.activation_offloading = offloads_activations;
  spec.streaming = streaming;
  spec.verify = true;
  LoadedCase loaded(backend, golden_folder("grouped_tied/model"),
                    *method.adapter == 0 ? "" : golden_folder(method.adapter), spec);
  auto& executor = loaded.executor();
  executor.set_input("inverse_tokens", 0.5F / static_cast<float>(kOffloadedRowTokens));
  executor.set_input("learning_rate", 0.01F);
  std::vector<std::vector<float>> values;
  for (uint32_t step = 0; step < 3; ++step) {
    uint32_t stream = 10 * step;
    for (const auto program :
         {program::ProgramName::micro_first, program::ProgramName::micro_next}) {
      if (executor.job().find(program) == nullptr) continue;
      if (executor.has("random"))
        executor.set_input("random", std::array<int32_t, 2>{static_cast<int32_t>(step), 0});
      loaded.put_batch(program, random_ids(stream), random_ids(stream + 1));
      if (executor.has("step")) executor.set_input("step", static_cast<int32_t>(step + 1));
      executor.run(program);
      stream += 2;
    }
    executor.run(program::ProgramName::update);
    values.push_back(values_of(executor, "loss"));
    values.push_back(values_of(executor, "gradient_norm"));
  }
  for (const program::Tensor& trainable : executor.job().trainables)
    values.push_back(values_of(executor, trainable.name));
  return values;
}

// Copies of activations and of gradients are cut by the loss, which a card's recordings leave out.
TEST(StreamingNextToActivations, ChangesTheBitsOfNoAdapter) {
  const std::string backend = golden_backends().back();
  if (!has_device(backend)) GTEST_SKIP() << "skipped: no CUDA device";
  const Update update{"adamw", methods::OptimizerKind::adamw, true};
  const auto kept = train(backend, kMethods[1], update, {}, true);
  for (const int64_t window : {0, 13'000, 26'000, 40'000, 200'000}) {
    SCOPED_TRACE(window);
    const passes::StreamOptions streaming{.params = true,
                                          .optimizer = true,
                                          .update_on_host = true,
                                          .threshold_bytes = 0,
                                          .window_bytes = window};
    const auto streamed = train(backend, kMethods[1], update, streaming, true);
    ASSERT_EQ(streamed.size(), kept.size());
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(streamed[i], kept[i]) << "value " << i;
  }
}

class Streaming : public ::testing::TestWithParam<std::string> {
 protected:
  // Wherever weights, optimizer state and gradients lie, wherever weights are updated, and however
  // far ahead copies begin.
  static void expect_same_bits(const Method& method, const Update& update,
                               std::span<const passes::StreamOptions> streamings, size_t first) {
    SCOPED_TRACE(fmt::format("{}, {}", method.name, update.name));
    const auto kept = train(GetParam(), method, update, {});
    const bool may_step_on_host =
        GetParam() == "cpu" || methods::optimizer_of(update.optimizer).steps_on_host;
    for (size_t s = first; s < streamings.size(); s += streaming_step()) {
      if (streamings[s].update_on_host && !may_step_on_host) continue;
      const auto streamed = train(GetParam(), method, update, streamings[s]);
      ASSERT_EQ(streamed.size(), kept.size());
      for (size_t i = 0; i < kept.size(); ++i)
        EXPECT_EQ(streamed[i], kept[i]) << fmt::format("streaming {}, value {}", s, i);
    }
  }

  static void expect_same_bits(std::span<const Update> updates,
                               std::span<const passes::StreamOptions> streamings) {
    for (const Method& method : methods_of_backend())
      for (size_t u = 0; u < updates.size(); ++u)
        expect_same_bits(method, updates[u], streamings, u % streaming_step());
  }

  // The others take ten times as long: they train in one way, and each update meets every second
  // streaming.
  static std::span<const Method> methods_of_backend() {
    return std::span(kMethods).first(GetParam() == "cpu" ? kMethods.size() : 1);
  }
  static size_t streaming_step() { return GetParam() == "cpu" ? 1 : 2; }
};

using methods::OptimizerKind;

TEST_P(Streaming, ChangesNoBit) {
  if (!has_device(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  const std::vector<Update> updates{
      {"adamw", OptimizerKind::adamw, false},
      {"adamw in the backward pass", OptimizerKind::adamw, true},
      {"adamw_8bit", OptimizerKind::adamw_8bit, false},
      {"adamw_8bit in the backward pass", OptimizerKind::adamw_8bit, true},
      {"lion", OptimizerKind::lion, false},
      {"adafactor in the backward pass", OptimizerKind::adafactor, true},
      {"muon", OptimizerKind::muon, false},
      {"muon in the backward pass", OptimizerKind::muon, true}};
  const std::vector<passes::StreamOptions> streamings{
      {.params = true, .threshold_bytes = 0},
      {.params = true, .threshold_bytes = 4096, .window_bytes = 50'000},
      {.optimizer = true, .threshold_bytes = 0, .window_bytes = 20'000},
      {.optimizer = true, .update_on_host = true, .threshold_bytes = 0},
      {.params = true, .optimizer = true, .threshold_bytes = 0, .window_bytes = 100'000},
      {.params = true,
       .optimizer = true,
       .update_on_host = true,
       .threshold_bytes = 0,
       .window_bytes = 100'000},
      // Norms are updated on the device, next to what the host updates.
      {.params = true,
       .optimizer = true,
       .update_on_host = true,
       .threshold_bytes = 4096,
       .window_bytes = 100'000}};
  expect_same_bits(updates, streamings);
}

// Random bits that round weights, moments and sums of gradients belong to elements, not to where
// the elements lie.
TEST_P(Streaming, ChangesNoBitOfBf16) {
  if (!has_device(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  if (GetParam() == "cpu" && !backends::cpu::has_bf16_products(backends::cpu::detect_isa()))
    GTEST_SKIP() << "no bf16 products on this machine";
  constexpr auto kBf16 = program::DType::bf16;
  const std::vector<Update> updates{
      {"adamw_bf16", OptimizerKind::adamw_bf16, false, kBf16},
      {"adamw_bf16 in the backward pass", OptimizerKind::adamw_bf16, true, kBf16},
      {"adamw with gradients in bf16", OptimizerKind::adamw, false, kBf16},
      {"adamw with gradients in bf16 in the backward pass", OptimizerKind::adamw, true, kBf16}};
  const std::vector<passes::StreamOptions> streamings{
      {.params = true, .optimizer = true, .threshold_bytes = 0, .window_bytes = 50'000},
      {.optimizer = true, .update_on_host = true, .threshold_bytes = 0},
      {.params = true,
       .optimizer = true,
       .update_on_host = true,
       .threshold_bytes = 2048,
       .window_bytes = 50'000}};
  expect_same_bits(updates, streamings);
}

INSTANTIATE_TEST_SUITE_P(, Streaming, ::testing::ValuesIn(golden_backends()),
                         [](const auto& test) { return test.param; });

INSTANTIATE_TEST_SUITE_P(, Offloading, ::testing::ValuesIn(golden_backends()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace snug::test
