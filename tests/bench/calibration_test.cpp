// Measuring: small steps really run, every operation of a step gets a sample, and the samples of a
// step predict that step. SNUG_TEST_BACKEND names the backend.
#include <gtest/gtest.h>

#include <set>

#include "bench/calibration_steps.h"
#include "bench/operation_timer.h"
#include "plan/clock.h"

namespace snug::bench {
namespace {

CalibrationStep small_step(plan::MethodKind method) {
  CalibrationStep step;
  models::ModelConfig& model = step.spec.model;
  model.model_type = "llama";
  model.hidden_size = 64;
  model.num_layers = 2;
  model.num_heads = 4;
  model.num_kv_heads = 2;
  model.head_dim = 16;
  model.intermediate_size = 128;
  model.vocab_size = 500;
  model.max_position = 1024;
  step.spec.method = method;
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

class Calibration : public testing::TestWithParam<plan::MethodKind> {};

TEST_P(Calibration, PredictsTheStepItMeasured) {
  const auto backend =
      backends::open_backend(SNUG_TEST_BACKEND, {.threads = 1, .device_memory_bytes = 0});
  const CalibrationStep step = small_step(GetParam());
  OperationTimes times;
  const StepTiming timing = time_operations(step, *backend, times);
  EXPECT_GE(timing.repeats, 5);
  EXPECT_LE(timing.least_seconds, timing.median_seconds);

  const std::vector<plan::RateSample> samples = times.samples();
  std::set<std::string> names;
  for (const plan::RateSample& sample : samples) {
    names.insert(sample.name);
    EXPECT_GT(sample.seconds, 0) << sample.name;
    EXPECT_GT(sample.work, 0) << sample.name;
  }
  const program::Load load{.segment_tokens = 64, .trained_fraction = 1.0, .row_tokens = 256};
  const plan::Job job = plan::plan_training(step.spec, *backend);
  for (const char* name : {"micro_first", "micro_next", "update"})
    for (const program::Operation& operation : job.find(name)->operations) {
      const plan::RateKey key = plan::rate_key({*job.find(name), operation}, load);
      EXPECT_TRUE(names.contains(key.name)) << key.name;
    }
  // Medians of operations know nothing of the pauses that a busy machine puts into every step.
  const double predicted = plan::step_seconds(job, 2, plan::Rates(samples), load);
  EXPECT_LT(predicted, timing.median_seconds * 1.5);
  EXPECT_GT(predicted, timing.least_seconds * 0.1);
}

INSTANTIATE_TEST_SUITE_P(Methods, Calibration,
                         testing::Values(plan::MethodKind::full, plan::MethodKind::lora),
                         [](const auto& method) {
                           return method.param == plan::MethodKind::full ? "full" : "lora";
                         });

TEST(CalibrationSteps, QuickIsPartOfFull) {
  const auto backend = backends::open_backend("cpu", {.threads = 1, .device_memory_bytes = 0});
  std::set<std::string> full;
  for (const CalibrationStep& step : calibration_steps(*backend, Grid::full)) {
    EXPECT_EQ(step.spec.rows * step.spec.row_tokens % step.segment_tokens, 0) << describe(step);
    full.insert(describe(step));
  }
  const auto quick = calibration_steps(*backend, Grid::quick);
  EXPECT_LT(quick.size() * 2, full.size());
  for (const CalibrationStep& step : quick) EXPECT_TRUE(full.contains(describe(step)));
}

}  // namespace
}  // namespace snug::bench
