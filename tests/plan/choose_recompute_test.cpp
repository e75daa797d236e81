// recompute=auto against every choice there is, where these can be listed, and against the uniform
// modes on a real shape.
#include "plan/choice/choose_recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "null_target.h"
#include "plan/job/assembly.h"
#include "plan/spec/spec.h"
#include "plan/time/calibration_file.h"
#include "plan/time/clock.h"
#include "program/text/text.h"
#include "words.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;
using passes::RecomputeMode;
using passes::RecomputeModes;

struct Point {
  int64_t bytes = 0;
  double seconds = 0;        // of full rows
  double short_seconds = 0;  // of rows of short documents, half of whose tokens carry loss
};

// Attention then takes next to nothing, so that other choices win.
constexpr program::ExpectedBounds kShort{.mean_segment_tokens = 16, .trained_fraction = 0.5};

Point point_of(const TrainingSpec& spec, const program::Target& target, const Rates& rates) {
  const Job job = plan_training(spec, target);
  return {job.layout.spaces[0].arena_bytes,
          step_seconds(job, spec.accumulation, rates, program::full_rows(spec.row_tokens)),
          step_seconds(job, spec.accumulation, rates, kShort)};
}

// Every mode in every layer: 6 to the power of the layers.
std::vector<Point> all_choices(TrainingSpec spec, const program::Target& target,
                               const Rates& rates) {
  const auto layers = static_cast<size_t>(spec.model.num_layers);
  std::vector<Point> points;
  std::vector<size_t> choice(layers, 0);
  while (true) {
    std::vector<RecomputeMode> modes;
    for (const size_t mode : choice) modes.push_back(passes::kRecomputeModes[mode]);
    spec.recompute = RecomputeModes(modes);
    points.push_back(point_of(spec, target, rates));
    size_t digit = 0;
    while (digit < layers && ++choice[digit] == passes::kRecomputeModes.size()) choice[digit++] = 0;
    if (digit == layers) return points;
  }
}

double fastest_within(const std::vector<Point>& points, double bytes,
                      double Point::*seconds = &Point::seconds) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Point& point : points)
    if (static_cast<double>(point.bytes) <= bytes) fastest = std::min(fastest, point.*seconds);
  return fastest;
}

TEST(ChooseRecompute, IsAsFastAsTheBestOfAllChoices) {
  const formats::Recipe recipe =
      formats::load_recipe("", {"model=smollm2-135m", "method=lora", "max_length=512",
                                "compute_dtype=fp32", "device_memory=1TiB"});
  auto config = *models::preset(recipe.model);
  config.num_layers = 4;
  const NullTarget roomy;
  const TrainingSpec spec = training_spec(recipe, config, roomy);
  const Rates rates = rates_for(recipe, roomy);
  const std::vector<Point> points = all_choices(spec, roomy, rates);
  const auto [least, most] = std::ranges::minmax(points, {}, &Point::bytes);
  const auto expect_fast = [&](int64_t budget, const program::ExpectedBounds& expected,
                               double Point::*seconds) {
    const RecomputeChoice choice =
        choose_recompute({&spec, 1}, {budget, {}, roomy, rates, expected});
    const Point point = point_of(choice.spec, roomy, rates);
    EXPECT_EQ(point.bytes, choice.device_bytes);
    EXPECT_EQ(point.*seconds, choice.step_seconds);
    EXPECT_LE(point.bytes, budget);
    const double nearly_all =
        std::max(0.995 * static_cast<double>(budget), static_cast<double>(least.bytes));
    EXPECT_LE(point.*seconds, 1.01 * fastest_within(points, nearly_all, seconds));
  };
  for (int i = 0; i <= 12; ++i) {
    const int64_t budget = least.bytes + (most.bytes - least.bytes) * i / 12;
    SCOPED_TRACE(budget);
    expect_fast(budget, program::full_rows(spec.row_tokens), &Point::seconds);
    expect_fast(budget, kShort, &Point::short_seconds);
  }
}

PlanDocument planned(const Words& words) {
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  const PlannedCard card(*find_hardware("h100"), recipe.device_memory);
  return assemble_training({recipe, model, card}).document;
}

const Words kJob{"model=llama-3.2-1b", "method=lora", "max_length=4096",
                 "per_device_train_batch_size=2"};

// At 50 budgets from the least that fits to more than enough.
TEST(ChooseRecompute, MoreMemoryIsNeverSlowerAndNoUniformModeIsFaster) {
  std::vector<Point> uniform;
  for (const char* mode :
       {"keep_all", "none", "gate_up", "attention", "all_but_attention", "layer"})
    for (const char* offloads : {"false", "true"}) {
      if (std::string_view(offloads) == "true" && std::string_view(mode) != "layer" &&
          std::string_view(mode) != "all_but_attention")
        continue;
      const PlanDocument document =
          planned(with(kJob, {std::string("recompute=") + mode,
                              std::string("activation_offloading=") + offloads}));
      uniform.push_back({document.device.report.peak_bytes, document.step_seconds, 0});
    }
  const auto [least, most] = std::ranges::minmax(uniform, {}, &Point::bytes);
  double slower = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 50; ++i) {
    const int64_t budget = least.bytes + (most.bytes + most.bytes / 20 - least.bytes) * i / 49;
    SCOPED_TRACE(budget);
    const PlanDocument document =
        planned(with(kJob, {"device_memory=" + std::to_string(budget) + "B"}));
    EXPECT_LE(document.device.report.peak_bytes, budget);
    EXPECT_LE(document.step_seconds, slower);
    EXPECT_LE(document.step_seconds,
              1.0000001 * fastest_within(uniform, static_cast<double>(budget)));
    slower = document.step_seconds;
  }
}

// Memory for copies, what is computed again and what waits on the host are chosen together.
TEST(ChooseRecompute, NextToCopiesItIsNoSlowerThanOneMode) {
  const std::vector<Words> jobs{
      {"model=smollm2-360m", "method=lora", "max_length=1024", "offload_params=true",
       "offload_optimizer=host", "device_memory=425026048B"},
      {"model=mistral-7b-v0.1", "method=lora", "max_length=256", "lora_dropout=0.1",
       "gradient_accumulation_steps=4", "offload_params=true", "device_memory=15315386112B"}};
  for (const Words& job : jobs) {
    SCOPED_TRACE(job[0]);
    const PlanDocument chosen = planned(job);
    EXPECT_LE(chosen.device.report.peak_bytes, chosen.device.capacity_bytes);
    const PlanDocument layers =
        planned(with(job, {"recompute=layer", "activation_offloading=true"}));
    ASSERT_LE(layers.device.report.peak_bytes, layers.device.capacity_bytes);
    for (const PlanDocument& other : {layers, planned(with(job, {"recompute=none"})),
                                      planned(with(job, {"recompute=keep_all"}))})
      if (other.device.report.peak_bytes <= other.device.capacity_bytes) {
        EXPECT_LE(chosen.step_seconds, other.step_seconds) << other.recompute;
      }
  }
}

// Without a key: what has room is planned as if the recipe said the fastest mode.
TEST(ChooseRecompute, IsTheDefaultAndKeepsAllWhereThatHasRoom) {
  const PlanDocument chosen = planned(kJob);
  const PlanDocument kept = planned(with(kJob, {"recompute=keep_all"}));
  EXPECT_EQ(chosen.recompute, "auto");
  EXPECT_EQ(layers_text(chosen), "keep_all in 16 layers");
  EXPECT_EQ(chosen.device.report.peak_bytes, kept.device.report.peak_bytes);
  EXPECT_EQ(chosen.step_seconds, kept.step_seconds);
  EXPECT_FALSE(chosen.activation_offloading);
  EXPECT_EQ(chosen.recompute_nothing_bytes, kept.device.report.peak_bytes);
}

// Memory of a processor that nobody states is not used up, and of several ranks the least counts.
TEST(ChooseRecompute, TakesTheMemoryThatAllRanksHaveAndOthersLeave) {
  const auto planned_on = [](int64_t bytes, Words more, std::optional<int64_t> least) {
    more.insert(more.begin(), {"model=smollm2-135m", "method=lora", "max_length=2048"});
    const formats::Recipe recipe = formats::load_recipe("", more);
    const models::ModelSource model = models::find_model(recipe.model);
    const NullTarget target(bytes);
    TrainingInputs inputs{recipe, model, target};
    inputs.least_capacity_bytes = least;
    return assemble_training(inputs).document;
  };
  const int64_t all = planned_on(int64_t{1} << 40, {}, {}).device.report.peak_bytes;
  const std::string stated = "device_memory=" + std::to_string(all);
  EXPECT_EQ(planned_on(all, {stated}, {}).device.report.peak_bytes, all);
  EXPECT_LT(planned_on(all, {}, {}).device.report.peak_bytes, all - all / 16);
  EXPECT_EQ(planned_on(all + all / 15 + 16, {}, {}).device.report.peak_bytes, all);
  const PlanDocument poorer = planned_on(all - all / 4, {stated}, {});
  EXPECT_LT(poorer.device.report.peak_bytes, all);
  const PlanDocument agreed = planned_on(all, {stated}, all - all / 4);
  EXPECT_EQ(layers_text(agreed), layers_text(poorer));
  EXPECT_EQ(agreed.device.report.peak_bytes, poorer.device.report.peak_bytes);
}

// As a rank plans what another one chose, whatever its own memory and rates would make it choose.
TEST(ChooseRecompute, IsTakenAsAnotherChose) {
  const formats::Recipe recipe =
      formats::load_recipe("", Words{"model=smollm2-135m", "method=lora", "max_length=2048"});
  const models::ModelSource model = models::find_model(recipe.model);
  const NullTarget large(int64_t{1} << 40);
  const TrainingInputs inputs{recipe, model, large};
  const PlannedTraining own = assemble_training(inputs);
  const NullTarget small(own.document.device.report.peak_bytes / 2);
  const PlannedTraining other = assemble_training({recipe, model, small});
  ASSERT_NE(layers_text(own.document), layers_text(other.document));
  TrainingInputs told = inputs;
  told.chosen = chosen_from_text(chosen_text(other.chosen()));
  const PlannedTraining same = assemble_training(told);
  EXPECT_EQ(layers_text(same.document), layers_text(other.document));
  EXPECT_EQ(same.document.recompute_nothing_bytes, other.document.recompute_nothing_bytes);
  ASSERT_EQ(same.job.programs.size(), other.job.programs.size());
  for (size_t i = 0; i < same.job.programs.size(); ++i)
    EXPECT_EQ(to_text(same.job.programs[i]), to_text(other.job.programs[i]));
  EXPECT_THROW(chosen_from_text("none"), base::UserError);
  EXPECT_THROW(chosen_from_text(R"({"recompute": ["often"]})"), base::UserError);
}

TEST(ChooseRecompute, TextOfAChoiceHoldsAllOfIt) {
  const Chosen chosen{
      passes::RecomputeModes({passes::RecomputeMode::layer, passes::RecomputeMode::keep_all}),
      true,
      65536,
      true,
      true,
      12};
  const Chosen again = chosen_from_text(chosen_text(chosen));
  EXPECT_EQ(again.recompute.layers(), chosen.recompute.layers());
  EXPECT_TRUE(again.activation_offloading);
  EXPECT_EQ(again.window_bytes, 65536);
  EXPECT_TRUE(again.update_on_host);
  EXPECT_TRUE(again.gathers_once);
  EXPECT_EQ(again.nothing_again_bytes, 12);
}

// The first layers, from which others are sized, may have no adapter.
TEST(ChooseRecompute, SizesJobsWhoseAdaptersAreInLaterLayers) {
  for (const char* targets : {"target_modules=.*layers\\.(1[0-9])\\..*(q|v)_proj",
                              "target_modules=model.layers.12.mlp.up_proj"}) {
    const PlanDocument document = planned(
        {"model=llama-3.2-1b", "method=lora", "max_length=4096", targets, "device_memory=3800MiB"});
    EXPECT_LE(document.device.report.peak_bytes, document.device.capacity_bytes);
    EXPECT_FALSE(document.recompute_layers.empty());
  }
}

}  // namespace
}  // namespace snug::plan
