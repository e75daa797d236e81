// Measuring: small steps really run, every operation of a step gets a sample, and the samples of a
// step predict that step. SNUG_TEST_BACKEND names the backend.
#include <gtest/gtest.h>

#include <set>

#include "backends/cuda/device/planned_card.h"
#include "bench/calibration_steps.h"
#include "bench/operation_timer.h"
#include "formats/recipe/choices.h"
#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"
#include "plan/time/clock.h"
#include "program/work/target.h"
#include "small_model.h"

namespace snug::bench {
namespace {

struct Form {
  const char* name;
  formats::Method method;
  int64_t experts = 0;
};

CalibrationStep small_step(const Form& form) {
  CalibrationStep step;
  step.spec.model =
      small_model({.hidden = 64, .layers = 2, .heads = 4, .kv_heads = 2, .mlp = 128, .vocab = 500});
  if (form.experts > 0) {
    step.spec.model.model_type = "mixtral";
    step.spec.model.num_experts = form.experts;
    step.spec.model.chosen_experts = 2;
    step.spec.model.expert_size = step.spec.model.intermediate_size;
  }
  step.spec.method = form.method;
  step.spec.compute = program::DType::f32;
  step.spec.row_tokens = 256;
  step.spec.row_segments = 4;
  step.spec.accumulation = 2;
  step.spec.lora.r = 8;
  step.spec.lora.dropout = 0.1;
  step.spec.lora.row_tokens = 256;
  step.segment_tokens = 64;
  step.least_repeats = 5;
  step.least_seconds = 0.05;
  return step;
}

class Calibration : public ::testing::TestWithParam<Form> {};

// A step that was measured, and what its operations' medians say of it.
struct Prediction {
  std::vector<plan::RateSample> samples;
  StepTiming timing;
  double seconds = 0;

  // Medians of operations know nothing of the pauses that a busy machine puts into every step.
  bool is_close() const {
    return seconds < timing.median_seconds * 1.5 && seconds > timing.least_seconds * 0.5;
  }
};

Prediction predict(const CalibrationStep& step, const plan::Job& job, backends::Backend& backend) {
  OperationTimes times;
  Prediction prediction{.samples = {}, .timing = time_operations(step, backend, times)};
  prediction.samples = times.samples();
  prediction.seconds = plan::step_seconds(job, 2, plan::Rates(prediction.samples),
                                          program::full_rows(step.segment_tokens));
  return prediction;
}

TEST_P(Calibration, PredictsTheStepItMeasured) {
  const auto backend =
      backends::open_backend(SNUG_TEST_BACKEND, {.threads = 1, .device_memory_bytes = 0});
  const CalibrationStep step = small_step(GetParam());
  const plan::Job job = plan::plan_training(step.spec, *backend);
  Prediction prediction = predict(step, job, *backend);
  for (int again = 0; again < 2 && !prediction.is_close(); ++again)
    prediction = predict(step, job, *backend);
  const StepTiming& timing = prediction.timing;
  EXPECT_GE(timing.repeats, 1) << "of which others disturbed none, or the fastest";
  EXPECT_LE(timing.least_seconds, timing.median_seconds);
  EXPECT_LT(prediction.seconds, timing.median_seconds * 1.5);
  // Where others had the processor in every repeat, even the fastest step waited for it.
  EXPECT_GT(prediction.seconds, timing.least_seconds * (timing.is_disturbed ? 0.1 : 0.5));

  std::set<std::string> names;
  for (const plan::RateSample& sample : prediction.samples) {
    names.insert(sample.name);
    EXPECT_GT(sample.seconds, 0) << sample.name;
    EXPECT_GT(sample.work, 0) << sample.name;
  }
  const program::ExpectedBounds expected = program::full_rows(step.segment_tokens);
  for (const plan::StepProgram& each : plan::step_programs(job, 2))
    for (const program::Operation& operation : each.program->operations) {
      const plan::RateKey key = plan::rate_key({*each.program, operation}, expected);
      EXPECT_TRUE(names.contains(key.form.name())) << key.form.name();
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, Calibration,
                         ::testing::Values(Form{"full", formats::Method::full},
                                           Form{"lora", formats::Method::lora},
                                           Form{"lora_of_experts", formats::Method::lora, 4},
                                           Form{"full_of_experts", formats::Method::full, 4}),
                         [](const auto& form) { return form.param.name; });

// A processor that is said to be a card: the grid asks no more than that.
class Card final : public program::Target {
 public:
  explicit Card(const program::Target& processor) : processor_(processor) {}
  std::string name() const override { return processor_.name(); }
  std::string library_versions() const override { return processor_.library_versions(); }
  int64_t capacity_bytes(program::Space space) const override {
    return processor_.capacity_bytes(space);
  }
  std::optional<program::DeviceFacts> device() const override { return program::DeviceFacts{}; }
  int64_t alignment_bytes() const override { return processor_.alignment_bytes(); }
  bool runs(const program::OperationView& view) const override { return processor_.runs(view); }
  program::Workspace workspace(const program::OperationView& view) const override {
    return processor_.workspace(view);
  }
  program::Attributes decide(const program::OperationView& view) const override {
    return processor_.decide(view);
  }

 private:
  const program::Target& processor_;
};

TEST(CalibrationSteps, FillACard) {
  const auto backend = backends::open_backend("cpu", {.threads = 1, .device_memory_bytes = 0});
  const auto grid = calibration_steps(*backend, Grid::full);
  const auto card_grid = calibration_steps(Card(*backend), Grid::full);
  // Without bf16 products there is nothing that a card's grid could add.
  if (grid.back().spec.compute != grid.front().spec.compute) {
    EXPECT_GT(card_grid.size(), grid.size());
    std::set<bool> adapted;
    bool quantized = false;
    std::set<bool> adapted_experts;
    for (const CalibrationStep& step : card_grid) {
      if (step.spec.row_tokens.decoder() < 16384) continue;
      adapted.insert(step.spec.is_adapted());
      quantized = quantized || step.spec.quantization;
      if (step.spec.model.num_experts > 0) adapted_experts.insert(step.spec.is_adapted());
      EXPECT_EQ(step.spec.row_tokens.decoder() % step.segment_tokens, 0) << describe(step);
      // What a card of 80 GB holds.
      EXPECT_LT(plan::plan_training(step.spec, *backend).layout.spaces[0].arena_bytes, 64LL << 30)
          << describe(step);
    }
    EXPECT_EQ(adapted.size(), 2U);
    EXPECT_TRUE(quantized);
    EXPECT_EQ(adapted_experts.size(), 2U) << "own kernels multiply experts on a card";
    // What jobs on a card are like comes first: where time is short, the rest is left out.
    for (size_t i = 0; i < 8; ++i)
      EXPECT_GE(card_grid[i].spec.row_tokens.decoder(), 4096) << describe(card_grid[i]);
  } else {
    EXPECT_EQ(card_grid.size(), grid.size());
  }
}

// Every operation of a step that a card would measure, at 1e12 of its unit per second.
void add_samples(const CalibrationStep& step, const program::Target& card,
                 std::vector<plan::RateSample>& samples) {
  const plan::Job job = plan::plan_training(step.spec, card);
  for (const plan::StepProgram& each : plan::step_programs(job, step.spec.accumulation))
    for (const program::Operation& operation : each.program->operations)
      for (const program::PricedShare& share : program::priced_shares(
               {*each.program, operation}, program::full_rows(step.segment_tokens)))
        samples.push_back({share.key.form.name(), share.key.shape, share.key.unit, share.key.work,
                           share.key.work / 1e12, share.key.multiplies});
}

// What a card's grid measures of them is what the plans of published mixtures ask for.
TEST(CalibrationSteps, HaveTheProductsOfExpertsThatACardRuns) {
  const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("h100"), 0);
  std::vector<plan::RateSample> samples;
  for (const CalibrationStep& step : calibration_steps(card, Grid::full))
    if (step.spec.model.num_experts > 0) add_samples(step, card, samples);
  ASSERT_FALSE(samples.empty());
  std::erase_if(samples, [](const plan::RateSample& sample) { return sample.work <= 0; });
  const plan::Rates rates(samples, card.device()->rates);
  for (const char* model_name : {"gpt-oss-20b", "mixtral-8x7b"}) {
    const formats::Recipe recipe = formats::load_recipe(
        "", {std::string("model=") + model_name, "method=lora", "max_length=4096"});
    const models::ModelSource model = models::find_model(recipe.model);
    const plan::PlannedTraining planned = plan::assemble_training({recipe, model, card});
    int products = 0;
    for (const plan::TimedOperations& group :
         plan::step_times(planned.job, planned.spec.accumulation, rates, planned.expected)) {
      if (!group.name.starts_with("grouped_matmul")) continue;
      EXPECT_EQ(group.unsampled_seconds, 0) << model_name << ": " << group.name;
      ++products;
    }
    EXPECT_GT(products, 0) << model_name;
  }
}

TEST(CalibrationSteps, AreFullOfSegments) {
  const auto backend = backends::open_backend("cpu", {.threads = 1, .device_memory_bytes = 0});
  for (const Grid grid : {Grid::full, Grid::quick})
    for (const CalibrationStep& step : calibration_steps(*backend, grid))
      EXPECT_EQ(step.spec.micro_tokens() % step.segment_tokens, 0) << describe(step);
}

}  // namespace
}  // namespace snug::bench
