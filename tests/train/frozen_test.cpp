// A full job that freezes some weights: they keep their bits, and the others get the bits that a
// job that trains everything gives them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "../backends/comparison.h"
#include "base/random.h"
#include "formats/recipe/recipe.h"
#include "golden_case.h"
#include "models/weights.h"
#include "plan/spec/frozen_weights.h"

namespace snug::test {
namespace {

using methods::OptimizerKind;
using program::DType;

constexpr int64_t kRows = 2;
constexpr int64_t kRowTokens = 12;

// A model, and the words of a recipe that freeze a part of it.
struct Part {
  const char* model;
  std::vector<std::string> words;
};

const std::vector<Part> kParts{
    {"grouped_tied", {"freeze_modules=embed_tokens,layers.0"}},
    {"grouped_tied", {"trainable_modules=lm_head,layers.2"}},
    {"biases", {"trainable_modules=layers.1,lm_head"}},
    {"biases", {"trainable_modules=lm_head"}},
    {"biases", {"trainable_modules=bias"}},
    {"biases", {"trainable_modules=layers.1.mlp.down_proj,layers.0.*v_proj"}},
    {"qwen3", {"trainable_modules=*norm*", "freeze_modules=layers.0.self_attn.k_norm"}},
    {"qwen3", {"trainable_modules=layers.1.self_attn.q_norm"}},
    {"phi3", {"trainable_modules=qkv_proj", "freeze_modules=layers.0"}},
    {"phi3", {"freeze_modules=gate_up_proj,embed_tokens,layers.0.self_attn"}}};

// How a job runs.
struct Form {
  const char* name;
  OptimizerKind optimizer = OptimizerKind::adamw;
  DType compute = DType::f32;
  passes::RecomputeMode recompute = passes::RecomputeMode::none;
  bool offloads_activations = false;
  passes::StreamOptions streaming{};
  int64_t accumulation = 1;
  bool in_backward = false;
};

const passes::StreamOptions kOnTheHost{.params = true,
                                       .optimizer = true,
                                       .update_on_host = true,
                                       .threshold_bytes = 0,
                                       .window_bytes = 20'000};
const passes::StreamOptions kThroughTheDevice{
    .params = true, .optimizer = true, .threshold_bytes = 0, .window_bytes = 50'000};

using Mode = passes::RecomputeMode;
const std::vector<Form> kForms{
    {.name = "adamw"},
    {.name = "adamw_8bit", .optimizer = OptimizerKind::adamw_8bit},
    {.name = "lion", .optimizer = OptimizerKind::lion},
    {.name = "adafactor", .optimizer = OptimizerKind::adafactor},
    {.name = "muon", .optimizer = OptimizerKind::muon},
    {.name = "accumulated", .accumulation = 2},
    {.name = "in the backward pass", .in_backward = true},
    {.name = "gate and up again", .recompute = Mode::gate_up},
    {.name = "attention again, accumulated", .recompute = Mode::attention, .accumulation = 2},
    {.name = "all but attention again, offloaded",
     .recompute = Mode::all_but_attention,
     .offloads_activations = true},
    {.name = "layers again, offloaded, in the backward pass",
     .optimizer = OptimizerKind::adamw_8bit,
     .recompute = Mode::layer,
     .offloads_activations = true,
     .in_backward = true},
    {.name = "all on the host", .streaming = kOnTheHost},
    {.name = "all on the host, 8 bits, layers again, accumulated",
     .optimizer = OptimizerKind::adamw_8bit,
     .recompute = Mode::layer,
     .streaming = kThroughTheDevice,
     .accumulation = 2},
    {.name = "all on the host, in the backward pass",
     .streaming = kThroughTheDevice,
     .in_backward = true}};
const std::vector<Form> kBf16Forms{
    {.name = "bf16", .compute = DType::bf16},
    {.name = "adamw_bf16", .optimizer = OptimizerKind::adamw_bf16, .compute = DType::bf16},
    {.name = "adamw_bf16, layers again, in the backward pass",
     .optimizer = OptimizerKind::adamw_bf16,
     .compute = DType::bf16,
     .recompute = Mode::layer,
     .in_backward = true},
    {.name = "adamw_8bit in bf16", .optimizer = OptimizerKind::adamw_8bit, .compute = DType::bf16}};

std::vector<int32_t> random_ids(uint32_t stream, int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (uint32_t i = 0; i < kRows * kRowTokens; ++i)
    ids.push_back(static_cast<int32_t>(base::philox({i, stream, 0, 0}, {7, 7})[0] %
                                       static_cast<uint32_t>(vocabulary)));
  return ids;
}

std::vector<std::byte> bytes_of(runtime::Executor& executor, const std::string& name) {
  const backends::Buffer& buffer = executor.tensor(name);
  std::vector<std::byte> bytes(static_cast<size_t>(buffer.bytes()));
  executor.backend().copy(bytes.data(), buffer.data, buffer.bytes());
  executor.backend().synchronise();
  return bytes;
}

using Weights = std::map<std::string, std::vector<std::byte>>;

// Of each step from 0, before the first, on.
std::vector<Weights> weights_by_step(const std::string& backend, const Part& part, const Form& form,
                                     const std::vector<std::string>& frozen, uint32_t steps) {
  plan::TrainingSpec spec;
  spec.method = methods::MethodKind::full;
  spec.frozen = frozen;
  spec.compute = form.compute;
  spec.rows = kRows;
  spec.row_tokens = kRowTokens;
  spec.accumulation = form.accumulation;
  spec.recompute = form.recompute;
  spec.activation_offloading = form.offloads_activations;
  spec.streaming = form.streaming;
  spec.update.optimizer = form.optimizer;
  if (form.optimizer == OptimizerKind::adamw_bf16) spec.update.gradient = form.compute;
  spec.update.weight_decay = 0.1;
  spec.update.max_grad_norm = 0;  // the norm is that of what trains
  spec.update_in_backward = form.in_backward;
  LoadedCase loaded(backend, golden_folder(part.model) + "/model", "", spec);
  auto& executor = loaded.executor();
  std::vector<Weights> found;
  const auto note = [&] {
    Weights& weights = found.emplace_back();
    for (const models::Weight& weight : models::weights_of(loaded.spec().model))
      weights[weight.name] = bytes_of(executor, weight.name);
  };
  note();
  executor.set_input("inverse_tokens",
                     1.0F / static_cast<float>(kRows * kRowTokens * form.accumulation));
  executor.set_input("learning_rate", 0.01F);
  for (uint32_t step = 1; step <= steps; ++step) {
    uint32_t stream = 10 * step;
    if (executor.has("step")) executor.set_input("step", static_cast<int32_t>(step));
    for (const auto program :
         {program::ProgramName::micro_first, program::ProgramName::micro_next}) {
      if (executor.job().find(program) == nullptr) continue;
      const int64_t vocabulary = loaded.spec().model.vocab_size;
      loaded.put_batch(program, random_ids(stream, vocabulary), random_ids(stream + 1, vocabulary));
      executor.run(program);
      stream += 2;
    }
    executor.run(program::ProgramName::update);
    note();
  }
  return found;
}

size_t changed_bytes(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  size_t changed = a.size() == b.size() ? 0 : std::max(a.size(), b.size());
  for (size_t i = 0; changed == 0 && i < a.size(); ++i)
    if (a[i] != b[i])
      for (size_t j = i; j < a.size(); ++j) changed += a[j] != b[j] ? 1 : 0;
  return changed;
}

void expect_bits(const std::string& backend, const Part& part, const Form& form) {
  SCOPED_TRACE(fmt::format("{} {}, {}", part.model, part.words.front(), form.name));
  std::vector<std::string> words{"method=full", "model=" + golden_folder(part.model) + "/model"};
  words.insert(words.end(), part.words.begin(), part.words.end());
  const formats::Recipe recipe = formats::load_recipe("", words);
  const auto frozen = plan::frozen_weights(recipe, models::find_model(recipe.model).config);
  const auto all = weights_by_step(backend, part, form, {}, 1);
  const auto some = weights_by_step(backend, part, form, frozen, 2);
  const std::set<std::string> is_frozen(frozen.begin(), frozen.end());
  ASSERT_EQ(some.front(), all.front());
  for (const auto& [name, start] : some.front()) {
    SCOPED_TRACE(name);
    if (is_frozen.contains(name)) {
      EXPECT_TRUE(some[1].at(name) == start && some[2].at(name) == start);
    } else {
      EXPECT_EQ(changed_bytes(some[1].at(name), all[1].at(name)), 0U) << "of " << start.size();
      EXPECT_FALSE(some[2].at(name) == start);
    }
    EXPECT_FALSE(all[1].at(name) == start) << "nothing trained";
  }
}

// On the host every part in every form; on a device, where it takes ten times as long, each part in
// every third form (in every second one where there are few), so that all parts and forms are met.
void expect_bits(const std::string& backend, const std::vector<Form>& forms) {
  const size_t step = backend != "cuda" ? 1 : forms.size() > 4 ? 3 : 2;
  for (size_t p = 0; p < kParts.size(); ++p)
    for (size_t f = p % step; f < forms.size(); f += step)
      expect_bits(backend, kParts[p], forms[f]);
}

class Frozen : public ::testing::TestWithParam<std::string> {};

TEST_P(Frozen, WeightsKeepTheirBitsAndTheOthersGetThoseOfAWholeJob) {
  if (!has_device(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  expect_bits(GetParam(), kForms);
}

TEST_P(Frozen, WeightsKeepTheirBitsInBf16Too) {
  if (!has_device(GetParam())) GTEST_SKIP() << "skipped: no CUDA device";
  if (GetParam() == "cpu" && !backends::test::cpu_must_multiply_bf16())
    GTEST_SKIP() << "the processor has no bf16 products";
  expect_bits(GetParam(), kBf16Forms);
}

INSTANTIATE_TEST_SUITE_P(, Frozen, ::testing::ValuesIn(golden_backends()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace snug::test
