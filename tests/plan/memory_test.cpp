// What a plan may take: the memory table that the project set itself, and the layout's slack.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/processor_time.h"
#include "backends/backend.h"
#include "formats/recipe/recipe.h"
#include "null_target.h"
#include "plan/job/memory.h"
#include "plan/spec/spec.h"

namespace snug::plan {
namespace {

constexpr double kDecimalGigabyte = 1e9;

Job plan_of(const std::vector<std::string>& words, const program::Target& target) {
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  return plan_training(training_spec(recipe, model.config, target), target);
}

std::vector<std::string> goal_words(const char* recompute) {
  return {"model=llama-3.1-8b", "max_length=8192", "per_device_train_batch_size=2",
          fmt::format("recompute={}", recompute)};
}

double gigabytes(const Job& job) {
  return static_cast<double>(job.layout.spaces[0].arena_bytes) / kDecimalGigabyte;
}

struct Goal {
  const char* name;
  std::vector<std::string> words;
  const char* recompute;
  double gigabytes;
};

// 2 rows of 8192 tokens of llama-3.1-8b; within 3 % of the table, or below.
const std::vector<Goal> kGoals{
    {"lora_none", {"method=lora"}, "none", 68 * 1.03},
    {"lora_gate_up", {"method=lora"}, "gate_up", 38 * 1.03},
    {"lora_layer", {"method=lora"}, "layer", 25 * 1.03},
    {"qlora_none", {"method=qlora"}, "none", 58 * 1.03},
    {"qlora_layer", {"method=qlora"}, "layer", 14 * 1.03},
    {"full_bf16_layer", {"method=full", "optim=adamw_bf16"}, "layer", 72},
    {"full_8bit_layer", {"method=full", "optim=adamw_8bit"}, "layer", 56},
    {"full_8bit_in_backward_layer",
     {"method=full", "optim=adamw_8bit", "optim_in_backward=true", "max_grad_norm=0"},
     "layer",
     40},
};

void expect_below_bars(const program::Target& target) {
  for (const Goal& goal : kGoals) {
    std::vector<std::string> words = goal_words(goal.recompute);
    words.insert(words.end(), goal.words.begin(), goal.words.end());
    const Job job = plan_of(words, target);
    EXPECT_LE(gigabytes(job), goal.gigabytes) << goal.name << " on " << target.name();
    // Weights alone are 16 GB, or 3.6 in 4 bits next to 2.1 of embedding and head: a plan that
    // forgot them is no plan.
    const bool is_quantized = goal.words[0] == "method=qlora";
    EXPECT_GE(gigabytes(job), is_quantized ? 5.7 : 16.06) << goal.name;
  }
}

TEST(MemoryBars, HoldOnATargetWithoutADevice) { expect_below_bars(NullTarget()); }

TEST(MemoryBars, HoldOnTheCpu) {
  const auto cpu = backends::open_backend("cpu", {});
  if (compute_type(formats::load_recipe("", {}), *cpu) != program::DType::bf16)
    GTEST_SKIP() << "this processor has no bf16 products";
  expect_below_bars(*cpu);
}

struct ArenaSize {
  int64_t bytes;
  int64_t lower_bound_bytes;
};

// Of each space. A job that several tests ask about is planned once.
const std::vector<ArenaSize>& arenas_of(const std::vector<std::string>& words,
                                        const program::Target& target) {
  static std::map<std::pair<std::string, std::vector<std::string>>, std::vector<ArenaSize>> known;
  std::vector<ArenaSize>& arenas = known[{std::string(target.name()), words}];
  if (arenas.empty())
    for (const passes::SpaceLayout& space : plan_of(words, target).layout.spaces)
      arenas.push_back({space.arena_bytes, space.lower_bound_bytes()});
  return arenas;
}

void expect_tight(const std::vector<std::string>& words, const program::Target& target) {
  for (const ArenaSize& arena : arenas_of(words, target)) {
    if (arena.bytes == 0) continue;
    EXPECT_GE(arena.bytes, arena.lower_bound_bytes);
    EXPECT_LE(static_cast<double>(arena.bytes),
              1.005 * static_cast<double>(arena.lower_bound_bytes))
        << fmt::format("{} {} on {}", words[0], words[1], target.name());
  }
}

std::vector<std::string> words_of(const std::string& preset, const std::string& method,
                                  std::string_view mode, int64_t tokens, int64_t rows) {
  return {"model=" + preset, method, fmt::format("recompute={}", mode),
          fmt::format("max_length={}", tokens),
          fmt::format("per_device_train_batch_size={}", rows)};
}

std::vector<std::vector<std::string>> methods_and_modes(const std::string& preset) {
  std::vector<std::vector<std::string>> all;
  for (const char* method : {"method=lora", "method=qlora", "method=full",
                             "method=full optim=adamw_bf16", "method=full optim=adamw_8bit"}) {
    for (const char* mode : {"none", "gate_up", "attention", "all_but_attention", "layer"}) {
      const std::string text = method;
      const size_t space = text.find(' ');
      all.push_back(words_of(preset, text.substr(0, space), mode, 1024, 2));
      if (space != std::string::npos) all.back().push_back(text.substr(space + 1));
    }
  }
  return all;
}

// Rows of a micro-batch, tokens per row, recompute. The modes between the ends in one shape.
struct Shape {
  int64_t rows, tokens;
  const char* mode;
};
constexpr Shape kShapes[]{{1, 64, "none"},      {1, 64, "layer"},       {2, 1024, "none"},
                          {2, 1024, "gate_up"}, {2, 1024, "attention"}, {2, 1024, "layer"},
                          {8, 2048, "none"},    {8, 2048, "layer"}};

// A preset, and which cases of it: all are planned in "make test-long". Of some, every few of the
// list, each preset begins with the next one, so that presets of a family have them all between
// them.
struct PresetCases {
  std::string preset;
  size_t first = 0;
  size_t step = 1;
};

std::vector<PresetCases> all_cases() {
  std::vector<PresetCases> all;
  for (const std::string& preset : models::preset_names()) all.push_back({preset});
  return all;
}

std::vector<PresetCases> some_cases(size_t step) {
  std::vector<PresetCases> some;
  for (const std::string& preset : models::preset_names())
    some.push_back({preset, some.size() % step, step});
  return some;
}

class QloraOfPreset : public ::testing::TestWithParam<PresetCases> {};

TEST_P(QloraOfPreset, TakesLessThanLora) {
  const NullTarget target;
  const std::string& preset = GetParam().preset;
  const int64_t longest = models::preset(preset)->max_position;
  for (size_t i = GetParam().first; i < std::size(kShapes); i += GetParam().step) {
    const Shape& shape = kShapes[i];
    // Scales are quantised too unless a recipe says otherwise.
    const auto bytes = [&](const char* method, const char* more = nullptr) {
      auto words =
          words_of(preset, method, shape.mode, std::min(shape.tokens, longest), shape.rows);
      if (more != nullptr) words.emplace_back(more);
      return arenas_of(words, target)[0].bytes;
    };
    const int64_t nf4 = bytes("method=qlora", "double_quant=false");
    const std::string name = fmt::format("{} x {} {}", shape.rows, shape.tokens, shape.mode);
    EXPECT_LT(nf4, bytes("method=lora")) << name;
    EXPECT_LT(bytes("method=qlora"), nf4) << name;
  }
}

class ArenaOfPreset : public ::testing::TestWithParam<PresetCases> {};

TEST_P(ArenaOfPreset, IsWithinHalfAPercentOfTheLowerBound) {
  const NullTarget target;
  const auto cases = methods_and_modes(GetParam().preset);
  for (size_t i = GetParam().first; i < cases.size(); i += GetParam().step)
    expect_tight(cases[i], target);
}

std::string test_name(const ::testing::TestParamInfo<PresetCases>& info) {
  std::string name = info.param.preset;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

// Of 8 shapes one each, with its three plans; of 25 methods and modes four, in steps that go
// through all modes.
INSTANTIATE_TEST_SUITE_P(Some, QloraOfPreset, ::testing::ValuesIn(some_cases(8)), test_name);
INSTANTIATE_TEST_SUITE_P(Some, ArenaOfPreset, ::testing::ValuesIn(some_cases(6)), test_name);
INSTANTIATE_TEST_SUITE_P(All, QloraOfPreset, ::testing::ValuesIn(all_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(All, ArenaOfPreset, ::testing::ValuesIn(all_cases()), test_name);

TEST(Arena, IsWithinHalfAPercentOfTheLowerBoundOnTheCpuToo) {
  const auto cpu = backends::open_backend("cpu", {});
  const bool bf16 = compute_type(formats::load_recipe("", {}), *cpu) == program::DType::bf16;
  for (const char* preset : {"smollm2-135m", "tinyllama-1.1b", "llama-3.1-8b"})
    for (const auto& words : methods_and_modes(preset))
      if (bf16 || words.size() == 5) expect_tight(words, *cpu);
}

TEST(Arena, HoldsAccumulationAndEvaluationTightlyToo) {
  expect_tight({"model=llama-3.2-1b", "method=full", "gradient_accumulation_steps=4",
                "eval_data=some.jsonl"},
               NullTarget());
  expect_tight({"model=llama-3.2-1b", "method=lora", "lora_dropout=0.1",
                "gradient_accumulation_steps=4", "max_length=300"},
               NullTarget());
}

int64_t role_bytes(const Job& job, program::Role role) {
  const MemoryReport memory = read_memory(job);
  const auto& by_role = memory.device().by_role;
  const auto found = by_role.find(std::string(program::name_of(role)));
  return found == by_role.end() ? 0 : found->second;
}

// Weights in bf16, two codes, two scales for 256 elements: 4.03 bytes per weight; and gradients in
// bf16, of which an update in the backward pass keeps about one.
TEST(EightBits, CostFourBytesAWeightAndTwoOfGradient) {
  std::vector<std::string> words = goal_words("layer");
  words.insert(words.end(), {"method=full", "optim=adamw_8bit"});
  const Job job = plan_of(words, NullTarget());
  words.insert(words.end(), {"optim_in_backward=true", "max_grad_norm=0"});
  const Job in_backward = plan_of(words, NullTarget());
  const auto parameters = static_cast<double>(job.parameters);
  for (const Job* each : {&job, &in_backward}) {
    EXPECT_NEAR(static_cast<double>(role_bytes(*each, program::Role::moment)) / parameters, 2.031,
                0.001);
    EXPECT_EQ(role_bytes(*each, program::Role::master), 0);
  }
  EXPECT_NEAR(gigabytes(job) - gigabytes(in_backward), 2 * parameters / kDecimalGigabyte, 1.2);
  // The head's or the embedding's, the largest.
  EXPECT_LE(role_bytes(in_backward, program::Role::gradient), 2 * 128256 * 4096 + (1 << 20));
}

TEST(MemoryReport, AddsUpToThePeak) {
  const Job job = plan_of({"model=smollm2-135m", "method=lora"}, NullTarget());
  const MemoryReport memory = read_memory(job);
  const SpaceReport& device = memory.device();
  int64_t roles = 0;
  for (const auto& [role, bytes] : device.by_role) roles += bytes;
  int64_t layers = 0;
  for (const auto& [layer, bytes] : device.by_layer) layers += bytes;
  int64_t live = 0;
  for (const LiveTensor& tensor : device.live) live += tensor.bytes;
  EXPECT_EQ(roles, layers);
  EXPECT_EQ(roles, live);
  EXPECT_LE(roles, device.lower_bound_bytes);
  // What is missing is padding to the alignment.
  EXPECT_GE(roles, device.lower_bound_bytes - 256 * static_cast<int64_t>(device.live.size()));
  EXPECT_EQ(device.peak_program, name_of(program::ProgramName::micro_first));
  EXPECT_GE(device.peak_index, 0);
}

TEST(Layout, OfTheLargestPresetTakesUnder50Milliseconds) {
  const Job job = plan_of({"model=llama-3.1-70b", "method=lora", "gradient_accumulation_steps=2",
                           "recompute=layer", "eval_data=some.jsonl"},
                          NullTarget());
  double best = 1e9;  // the least of several: other programs share its caches
  for (int run = 0; run < 10; ++run) {
    const double start = testing::processor_seconds();
    const passes::Layout layout = passes::layout(job.programs, 256);
    const double elapsed = 1e3 * (testing::processor_seconds() - start);
    ASSERT_EQ(layout.spaces[0].arena_bytes, job.layout.spaces[0].arena_bytes);
    best = std::min(best, elapsed);
  }
  EXPECT_LT(best, 50.0);
}

}  // namespace
}  // namespace snug::plan
