// What a planned time rests on: samples of the operation, of another algorithm, or none.
#include "plan/time/estimate.h"

#include <gtest/gtest.h>
#include "../source_folder.h"

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"
#include "plan/time/clock.h"
#include "rate_texts.h"

namespace snug::plan {
namespace {

enum class By { sample, other_algorithm, nothing };

// The whole time rests on one of them.
void expect_by(By by, const Estimate& estimate) {
  EXPECT_GT(estimate.seconds, 0);
  EXPECT_DOUBLE_EQ(estimate.unsampled_seconds, by == By::nothing ? estimate.seconds : 0);
  EXPECT_DOUBLE_EQ(estimate.other_algorithm_seconds,
                   by == By::other_algorithm ? estimate.seconds : 0);
}

Estimate estimate_of(const Rates& rates, const std::string& text) {
  const Program program = parse_text("program rates\n" + text);
  return rates.estimate(OperationView{program, program.operations.at(0)}, {});
}

TEST(Estimate, RestsOnSamplesThatAreNear) {
  const Rates rates({sample_of(product(1024, 512, 512), 1e12)});
  expect_by(By::sample, estimate_of(rates, product(1024, 512, 512)));
  expect_by(By::sample, estimate_of(rates, product(2048, 512, 1024)));
  // More than a factor of eight away, of a sample that took little more than a launch or not.
  expect_by(By::nothing, estimate_of(rates, product(1024 * 16, 512, 512)));
  const RateSample launch{"cast f32 > f32", {8}, Work::bytes, 8, 1e-6};
  const Rates long_ones({sample_of(product(1024, 512, 512), 1e12), launch});
  expect_by(By::nothing, estimate_of(long_ones, product(1024 * 16, 512, 512)));
  expect_by(By::nothing, estimate_of(rates, "tensor a (64) f32\ny (64) bf16 = cast(a)"));
}

TEST(Estimate, SaysThatTheSampleIsOfAnotherAlgorithm) {
  const std::string two =
      "tensor x (64, 32) bf16\ntensor w (16, 32) bf16\ntensor h (64, 8) bf16\n"
      "tensor b (16, 8) bf16\ny (64, 16) bf16 = matmul(x, w, h, b) {transpose_b, augmented, "
      "low_transpose_b, products 2 low_algorithm few_rows, algorithm library}";
  RateSample main = sample_of(two, 1e9);
  main.name = without_decisions(key_of(two).form).name();
  expect_by(By::other_algorithm, estimate_of(Rates({main}), two));
  expect_by(By::sample, estimate_of(Rates({main, sample_of(two, 1e9)}), two));
  // Attention of scores that are capped, by the plain form.
  const std::string capped = attention(128, ", softcap 50");
  const RateSample plain = sample_of(attention(128, ""), 400e12);
  expect_by(By::other_algorithm, estimate_of(Rates({plain}, kPeaks), capped));
  expect_by(By::nothing, estimate_of(Rates::of_data_sheet(kPeaks), capped));
}

TEST(Estimate, CountsMeasuredRatesOfTheMachine) {
  const std::string copy =
      "tensor a (1000000) f32\n"
      "x (1000000) f32 pinned_host = transfer(a) channel device_to_host";
  const RateSample cast{"cast f32 > f32", {8e6}, Work::bytes, 8e6, 1e-3};
  const RateSample link{std::string(kLinkToHost), {1e9}, Work::link_bytes, 1e9, 0.05};
  expect_by(By::nothing, estimate_of(Rates({cast}, kPeaks), copy));
  expect_by(By::sample, estimate_of(Rates({cast, link}, kPeaks), copy));
}

// Casts to bf16 have samples, those to f32 none.
Timeline timeline_of(const std::string& text) {
  std::vector<RateSample> samples;
  for (const double n : {1.0, 2.0, 3.0, 10.0})
    samples.push_back({"cast f32 > bf16", {6 * n}, Work::bytes, 6 * n, n * 1e-3});
  return simulate(parse_text("program clock\n" + text), Rates(samples), {});
}

TEST(Estimate, OfATimelineAddsUpWhatItWaitedFor) {
  const Timeline one_stream = timeline_of(
      "tensor a (3) f32\nx (3) bf16 = cast(a)\ny (3) f32 = cast(a)\nz (3) bf16 = cast(a)");
  ASSERT_EQ(one_stream.operations.size(), 3U);
  const double unsampled = one_stream.operations[1].unsampled_seconds;
  EXPECT_GT(unsampled, 0);
  EXPECT_EQ(one_stream.operations[0].unsampled_seconds, 0);
  EXPECT_DOUBLE_EQ(one_stream.unsampled_seconds, unsampled);
  // Nothing waits for what goes on next to it.
  const Timeline hidden = timeline_of(
      "tensor a (10) f32\ntensor b (1) f32\n"
      "x (10) bf16 = cast(a)\ny (1) f32 = cast(b) channel device_to_host");
  ASSERT_GT(hidden.operations[1].unsampled_seconds, 0);
  ASSERT_LT(hidden.operations[1].seconds, hidden.operations[0].seconds);
  EXPECT_EQ(hidden.unsampled_seconds, 0);
  const Timeline awaited = timeline_of(
      "tensor a (1) f32\ny (1) f32 = cast(a) channel device_to_host\nx (1) bf16 = cast(y)");
  EXPECT_DOUBLE_EQ(awaited.unsampled_seconds, awaited.operations[0].seconds);
}

PlannedTraining planned_on_h100(const char* model_name) {
  static const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("h100"), 0);
  static formats::Recipe recipe;
  static models::ModelSource model;
  recipe = formats::load_recipe(
      "", {fmt::format("model={}", model_name), "max_length=2048", "method=lora",
           fmt::format("calibration={}/bench/results/calibration-NVIDIA-H100-80GB-HBM3.json",
                       test::source_folder())});
  model = models::find_model(recipe.model);
  return assemble_training({recipe, model, card});
}

// No product of experts by own kernels was measured for that file.
TEST(Estimate, OfMixturesIsWithoutASampleOnTheCardThatWasMeasured) {
  const PlannedTraining planned = planned_on_h100("gpt-oss-20b");
  double by_experts = 0;
  for (const TimedOperations& group : planned.times()) {
    if (!group.name.starts_with("grouped_matmul")) continue;
    EXPECT_DOUBLE_EQ(group.unsampled_seconds, group.seconds) << group.name;
    by_experts += group.seconds;
  }
  const PlanDocument& document = planned.document;
  EXPECT_GT(by_experts, 0.3 * document.step_seconds);
  EXPECT_GE(document.step_unsampled_seconds, by_experts);
  EXPECT_LE(document.step_unsampled_seconds + document.step_other_algorithm_seconds,
            document.step_seconds * (1 + 1e-9));
  EXPECT_NE(summary(document).find(" % of the time without a sample"), std::string::npos)
      << summary(document);
}

TEST(Estimate, OfADenseModelIsBySamplesOnTheCardThatWasMeasured) {
  const PlannedTraining planned = planned_on_h100("llama-3.1-8b");
  EXPECT_LT(planned.document.step_unsampled_seconds, 0.1 * planned.document.step_seconds);
}

TEST(Estimate, IsWhollyUnsampledByADataSheet) {
  const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("h100"), 0);
  const formats::Recipe recipe = formats::load_recipe("", {"model=llama-3.1-8b", "method=lora"});
  const models::ModelSource model = models::find_model(recipe.model);
  const PlanDocument document = assemble_training({recipe, model, card}).document;
  EXPECT_DOUBLE_EQ(document.step_unsampled_seconds, document.step_seconds);
  EXPECT_EQ(step_basis_text(document), "an estimate from data sheet rates, not measured");
}

}  // namespace
}  // namespace snug::plan
