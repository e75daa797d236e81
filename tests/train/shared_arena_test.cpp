// Training and generation as stages of one job: the weights are the same tensors, and what each
// stage has besides lies in the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../base/captured_stream.h"
#include "base/error.h"
#include "engine/cached_forward.h"
#include "engine/engine.h"
#include "golden_case.h"
#include "program/ir/tensor_names.h"

namespace snug::test {
namespace {

using program::ProgramName;
using program::Stage;

constexpr int64_t kRows = 2;
constexpr int64_t kRowTokens = 16;
constexpr int64_t kSteps = 3;
const engine::Ids kFirstAlone{1, engine::CachedForward::kIdle, engine::CachedForward::kIdle};

struct SharedArenaCase {
  std::string backend;
  std::string model;
  std::string adapter;  // empty: all weights train
};

plan::InferenceShape shape() {
  plan::InferenceShape shape;
  shape.sequences = 3;
  shape.capacity = 64;
  shape.prefill_tokens = 8;
  shape.decode_sizes = {1, 2};
  return shape;
}

std::vector<engine::Ids> prompts() {
  return {{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}, {8, 9, 7}, {9, 3, 2, 3, 8, 4}, {6}, {2, 6, 4, 3}};
}

std::vector<engine::Request> requests_of(const std::vector<engine::Ids>& prompts,
                                         int64_t new_tokens) {
  std::vector<engine::Request> requests;
  for (const engine::Ids& prompt : prompts)
    requests.push_back({.prompt = prompt, .max_new_tokens = new_tokens});
  return requests;
}

std::vector<engine::Ids> answers_of(engine::Engine& engine,
                                    const std::vector<engine::Request>& requests) {
  std::vector<engine::Ids> ids;
  for (const engine::Answer& answer : engine.answers(requests)) ids.push_back(answer.ids);
  return ids;
}

std::vector<engine::Ids> generate_all(runtime::Executor& executor,
                                      const models::ModelConfig& model) {
  engine::Engine engine(executor, model, shape());
  return answers_of(engine, requests_of(prompts(), 12));
}

// The programs that ran since the last look.
class ProgramsRun final : public runtime::Executor::Observer {
 public:
  void before(const program::Program& program, size_t) override { names_.insert(program.name); }
  void after(const program::Program&, size_t) override {}
  std::set<std::string> take() { return std::exchange(names_, {}); }

 private:
  std::set<std::string> names_;
};

class SharedArena : public ::testing::TestWithParam<SharedArenaCase> {
 protected:
  void SetUp() override {
    if (!has_device(GetParam().backend)) GTEST_SKIP() << "there is no card";
  }

  static LoadedCase load(bool generates) {
    plan::TrainingSpec spec;
    spec.method = methods::MethodKind::full;
    spec.compute = program::DType::f32;
    spec.rows = kRows;
    spec.row_tokens = kRowTokens;
    spec.row_segments = 1;
    if (generates) spec.generation = shape();
    const auto path = [](const std::string& name) {
      return name.empty() ? name : golden_folder(name);
    };
    return {GetParam().backend, path(GetParam().model), path(GetParam().adapter), std::move(spec)};
  }

  // The loss of a step.
  static float step(LoadedCase& loaded, int64_t number) {
    std::vector<int32_t> ids(static_cast<size_t>(kRows * kRowTokens));
    std::iota(ids.begin(), ids.end(), static_cast<int32_t>(number));
    std::vector<int32_t> targets = ids;
    std::rotate(targets.begin(), targets.begin() + 1, targets.end());
    runtime::Executor& executor = loaded.executor();
    loaded.put_batch(ProgramName::micro_first, ids, targets);
    executor.set_input(program::kInverseTokensName, 1.0F / static_cast<float>(ids.size()));
    executor.set_input(program::kLearningRateName, 0.05F);
    if (executor.has(program::kStepName))
      executor.set_input(program::kStepName, static_cast<int32_t>(number));
    executor.run(ProgramName::micro_first);
    executor.run(ProgramName::update);
    return executor.result<float>(program::kLossName);
  }
};

// A step has the same bits, whatever was generated before it.
TEST_P(SharedArena, StepsAreThoseOfAJobThatDoesNotGenerate) {
  LoadedCase alone = load(false);
  LoadedCase both = load(true);
  for (int64_t number = 1; number <= kSteps; ++number) {
    generate_all(both.executor(), both.spec().model);
    EXPECT_EQ(step(alone, number), step(both, number)) << number;
  }
}

// What is generated follows from the weights alone: it is what a second job, trained alike, gives
// that generates nothing in between.
TEST_P(SharedArena, GenerationFollowsTheWeights) {
  LoadedCase often = load(true);
  LoadedCase once = load(true);
  const std::vector<engine::Ids> first = generate_all(often.executor(), often.spec().model);
  for (int64_t number = 1; number <= kSteps; ++number) {
    step(often, number);
    step(once, number);
    if (number < kSteps) generate_all(often.executor(), often.spec().model);
  }
  const std::vector<engine::Ids> last = generate_all(often.executor(), often.spec().model);
  EXPECT_EQ(last, generate_all(once.executor(), once.spec().model));
  EXPECT_NE(first, last);
}

TEST_P(SharedArena, TakesTheLargerStageAndNotTheirSum) {
  LoadedCase alone = load(false);
  LoadedCase both = load(true);
  const passes::Layout& of_alone = alone.executor().job().layout;
  const passes::Layout& of_both = both.executor().job().layout;
  constexpr auto kDevice = static_cast<size_t>(program::Space::device);
  const passes::SpaceLayout& space = of_both.spaces[kDevice];
  const auto bytes_of = [&](Stage stage) {
    return space.of(stage).step_bytes + space.of(stage).program_bytes;
  };
  EXPECT_EQ(space.run_bytes, of_alone.spaces[kDevice].run_bytes);
  EXPECT_EQ(bytes_of(Stage::training),
            of_alone.spaces[kDevice].arena_bytes - of_alone.spaces[kDevice].run_bytes);
  EXPECT_GT(space.of(Stage::generation).step_bytes, 0);  // the caches
  EXPECT_EQ(space.arena_bytes,
            space.run_bytes + std::max(bytes_of(Stage::training), bytes_of(Stage::generation)));
}

// Sequences that go on are decoded by the smallest program that holds them.
TEST_P(SharedArena, FewSequencesDecodeAsInTheirOwnPrograms) {
  LoadedCase loaded = load(true);
  plan::InferenceShape one_size = shape();
  one_size.decode_sizes.clear();
  engine::Engine by_size(loaded.executor(), loaded.spec().model, shape());
  engine::Engine by_one(loaded.executor(), loaded.spec().model, one_size);
  // Both prompts are in the first chunk.
  std::vector<engine::Request> few = requests_of({{8, 9, 7}, {2, 6, 4, 3}}, 8);
  ProgramsRun programs;
  loaded.executor().set_observer(&programs);
  const std::vector<engine::Ids> of_size = answers_of(by_size, few);
  EXPECT_EQ(programs.take(), (std::set<std::string>{"prefill", "decode.2"}));
  EXPECT_EQ(of_size, answers_of(by_one, few));
  EXPECT_EQ(programs.take(), (std::set<std::string>{"prefill", "decode"}));
  few.resize(1);
  by_size.answers(few);
  EXPECT_EQ(programs.take(), (std::set<std::string>{"prefill", "decode.1"}));
  loaded.executor().set_observer(nullptr);
}

// What a stage left in its tensors is not there when another one has begun, and nobody reads it.
TEST_P(SharedArena, WhatAStageLeftIsNotReadAfterAnother) {
  LoadedCase loaded = load(true);
  runtime::Executor& executor = loaded.executor();
  step(loaded, 1);
  generate_all(executor, loaded.spec().model);
  EXPECT_TRUE(testing::dies([&] { (void)executor.result<float>(program::kLossName); },
                            "after another stage began"));
  engine::CachedForward forward(executor, shape());
  const engine::Ids prompt{3, 1, 4};
  const engine::SequencePart part{0, prompt};
  forward.prefill({&part, 1});
  step(loaded, 2);
  EXPECT_TRUE(testing::dies([&] { forward.decode(kFirstAlone); }, "another stage of the job"));
  forward.release_all();
  forward.prefill({&part, 1});
  EXPECT_EQ(forward.length(0), 3);
}

// A sequence that has ended leaves its place, and the others go on as they were.
TEST_P(SharedArena, ASequenceLeavesItsPlaceToAnother) {
  LoadedCase loaded = load(true);
  engine::CachedForward forward(loaded.executor(), shape());
  const engine::Ids prompt{3, 1, 4, 1, 5};
  const auto logits_of = [&](int64_t sequence) {
    const auto row = forward.logits(sequence);
    return std::vector<float>(row.begin(), row.end());
  };
  const engine::SequencePart alone{1, prompt};
  forward.prefill({&alone, 1});
  const std::vector<float> expected = logits_of(1);
  const engine::Ids other{9, 2, 6, 5};
  const engine::SequencePart next{2, other};
  forward.prefill({&next, 1});
  forward.release(1);
  forward.prefill({&alone, 1});
  EXPECT_EQ(logits_of(1), expected);
  EXPECT_EQ(forward.length(1), 5);
  EXPECT_EQ(forward.length(2), 4);
}

TEST_P(SharedArena, RequestsBeyondTheCacheAreErrors) {
  LoadedCase loaded = load(true);
  engine::CachedForward forward(loaded.executor(), shape());
  const engine::Ids long_prompt(9, 3);
  const engine::SequencePart part{0, long_prompt};
  EXPECT_THROW(forward.prefill({&part, 1}), base::UserError);
  EXPECT_EQ(forward.length(0), 0);
  const engine::Ids chunk(8, 3);
  const engine::SequencePart fits{0, chunk};
  for (int i = 0; i < 8; ++i) forward.prefill({&fits, 1});
  EXPECT_EQ(forward.length(0), 64);
  EXPECT_THROW(forward.decode(kFirstAlone), base::UserError);
  EXPECT_EQ(forward.length(0), 64);
}

std::vector<SharedArenaCase> cases() {
  std::vector<SharedArenaCase> cases;
  for (const std::string& backend : golden_backends()) {
    if (backend == "reference") continue;  // computes in the same memory as cpu, only slower
    cases.push_back({backend, "basic/model", ""});
    cases.push_back({backend, "grouped_tied/model", "lora_all_linear/adapter"});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, SharedArena, ::testing::ValuesIn(cases()), [](const auto& test) {
  return test.param.backend + (test.param.adapter.empty() ? "_full" : "_lora");
});

}  // namespace
}  // namespace snug::test
