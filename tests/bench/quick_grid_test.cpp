// The quick grid: small enough for a first run, and no kind of operation of a training step is
// missing from it.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "backends/backend.h"
#include "bench/calibration_steps.h"
#include "bench/operation_timer.h"
#include "plan/job/job.h"
#include "plan/time/rates.h"
#include "small_model.h"

namespace snug::bench {
namespace {

using Names = std::set<std::string>;

void add_names(const CalibrationStep& step, const program::Target& target, Names& names) {
  const plan::Job job = plan::plan_training(step.spec, target);
  for (const plan::StepProgram& run : plan::step_programs(job, step.spec.accumulation))
    for (const program::Operation& operation : run.program->operations)
      names.insert(
          plan::rate_key({*run.program, operation}, program::full_rows(step.segment_tokens))
              .form.name());
}

Names names_of(Grid grid, const program::Target& target) {
  Names names;
  for (const CalibrationStep& step : calibration_steps(target, grid))
    add_names(step, target, names);
  return names;
}

// What recipes ask for, of a model with everything that the families differ in.
std::vector<CalibrationStep> recipes(program::DType compute) {
  std::vector<CalibrationStep> steps;
  for (const bool varied : {false, true})
    for (const auto recompute : {passes::RecomputeMode::none, passes::RecomputeMode::gate_up,
                                 passes::RecomputeMode::attention, passes::RecomputeMode::layer}) {
      CalibrationStep step;
      models::ModelConfig& model = step.spec.model;
      model = small_model(
          {.hidden = 192, .layers = 3, .heads = 6, .kv_heads = 2, .mlp = 512, .vocab = 1000});
      model.tied_embeddings = varied;
      model.attention_bias = varied;
      if (!varied) model.model_type = "qwen3";  // norms of heads
      step.spec.row_tokens = step.segment_tokens = step.spec.lora.row_tokens = 256;
      step.spec.compute = compute;
      step.spec.recompute = recompute;
      step.spec.accumulation = varied ? 2 : 1;
      step.spec.method = methods::MethodKind::full;
      steps.push_back(step);
      step.spec.update.optimizer = methods::OptimizerKind::adamw_8bit;
      step.spec.update.gradient = compute;
      steps.push_back(step);
      if (compute == program::DType::bf16) {
        step.spec.update.optimizer = methods::OptimizerKind::adamw_bf16;
        steps.push_back(step);
      }
      for (const auto optimizer :
           {methods::OptimizerKind::lion, methods::OptimizerKind::adafactor}) {
        step.spec.update = {.optimizer = optimizer};
        steps.push_back(step);
      }
      step.spec.method = methods::MethodKind::lora;
      step.spec.lora.dropout = varied ? 0.1 : 0.0;
      for (const int64_t r : {4, 16, 32, 8}) {
        step.spec.lora.r = r;
        step.spec.update = {.optimizer = methods::OptimizerKind::adamw_8bit, .gradient = compute};
        steps.push_back(step);
        step.spec.update = {};
        steps.push_back(step);
      }
      step.spec.quantization = passes::QuantizeOptions{.nested = varied, .kept = {}};
      steps.push_back(step);
    }
  return steps;
}

// In f32, and in bf16 where this machine multiplies it.
class QuickGrid : public ::testing::TestWithParam<program::DType> {
 protected:
  void SetUp() override {
    if (calibration_steps(*backend_, Grid::quick).front().spec.compute == program::DType::f32 &&
        GetParam() == program::DType::bf16)
      GTEST_SKIP() << "no products of bf16 here";
  }
  const std::unique_ptr<backends::Backend> backend_ =
      backends::open_backend("cpu", {.threads = 1, .device_memory_bytes = 0});
};

TEST_P(QuickGrid, HasEveryOperationOfATrainingStep) {
  Names needed;
  for (const CalibrationStep& step : recipes(GetParam())) add_names(step, *backend_, needed);
  for (const Grid grid : {Grid::quick, Grid::full}) {
    const Names names = names_of(grid, *backend_);
    for (const std::string& name : needed) EXPECT_TRUE(names.contains(name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(ElementTypes, QuickGrid,
                         ::testing::Values(program::DType::f32, program::DType::bf16),
                         [](const auto& type) { return std::string(base::name_of(type.param)); });

// It runs next to a job that was given all the memory there is.
TEST(QuickGridMemory, IsSmall) {
  const auto backend = backends::open_backend("cpu", {.threads = 1, .device_memory_bytes = 0});
  const auto steps = calibration_steps(*backend, Grid::quick);
  EXPECT_LT(steps.size(), calibration_steps(*backend, Grid::full).size() / 2);
  for (const CalibrationStep& step : steps)
    EXPECT_LT(plan::plan_training(step.spec, *backend).layout.spaces[0].arena_bytes, 512 << 20)
        << describe(step);
}

}  // namespace
}  // namespace snug::bench
