// `snug search`: figures that are predicted or sized next to those of whole plans, and the fastest
// of all settings where they can be listed.
#include "plan/choice/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "backends/cuda/device/planned_card.h"
#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "plan/choice/fit.h"
#include "program/work/target.h"
#include "words.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;

models::ModelSource of_few_layers(const std::string& name) {
  models::ModelSource model = models::find_model(name);
  model.config.num_layers = 6;
  return model;
}

struct SearchedJob {
  SearchedJob(const Words& words, const char* card)
      : recipe(formats::load_recipe("", words)),
        model(of_few_layers(recipe.model)),
        target(*find_hardware(card), recipe.device_memory),
        inputs{recipe, model, target} {}
  const formats::Recipe recipe;
  const models::ModelSource model;
  const PlannedCard target;
  const TrainingInputs inputs;

  PlanDocument planned(const Setting& setting) const {
    const formats::Recipe changed = with_overrides(recipe, overrides_of(setting, recipe, target));
    return assemble_training({changed, model, target}).document;
  }
};

const Words kShape{"model=smollm2-360m", "max_length=1024", "devices=4"};
const Words kSmall = with(kShape, {"method=lora"});

TEST(Search, AsksForEveryCombinationOnce) {
  const SearchedJob job(kSmall, "rtx-4090");
  const std::vector<Setting> settings = settings_of(job.recipe, job.target);
  EXPECT_EQ(std::set<Setting>(settings.begin(), settings.end()).size(), settings.size());
  // Five strategies, of which two have three forms of prefetch; seven words of recompute, of which
  // three can offload; weights on the host or not; 1 to 128 rows.
  EXPECT_EQ(settings.size(), 9U * 10 * 2 * 8);
  const SearchedJob full(with(kShape, {"method=full", "strategy=zero1", "recompute=layer",
                                       "gradient_accumulation_steps=6"}),
                         "rtx-4090");
  // Two ways to offload layers, six to offload weights and optimizer, divisors of 6.
  EXPECT_EQ(settings_of(full.recipe, full.target).size(), 2U * 6 * 4);
}

// Where weights stream, sizes are of a small window of copies: the planner may choose a larger one,
// which takes more memory and less time.
TEST(Search, PredictsWhatPlansTake) {
  const SearchedJob job(with(kSmall, {"per_device_train_batch_size=4"}), "rtx-4090");
  const std::vector<Setting> settings = settings_of(job.recipe, job.target);
  SettingFigures figures(job.inputs, settings);
  const Budget budget{job.target.capacity_bytes(program::Space::device),
                      std::numeric_limits<int64_t>::max()};
  for (size_t i = 0; i < settings.size(); i += 37) {
    const Setting& setting = settings[i];
    if (setting.recompute == formats::Recompute::automatic) continue;
    SCOPED_TRACE(to_string(overrides_of(setting, job.recipe, job.target)));
    const PlanDocument document = job.planned(setting);
    const Figures predicted = figures.predicted(setting, budget);
    const Figures sized = figures.sized(setting, budget);
    const auto bytes = static_cast<double>(document.device.report.peak_bytes);
    EXPECT_LE(predicted.device_bytes, 1.05 * bytes);
    EXPECT_LE(sized.device_bytes, 1.05 * bytes);
    EXPECT_LE(predicted.least_seconds,
              (setting.offloads_params ? 1.3 : 1.1) * document.step_seconds);
    if (setting.offloads_params) continue;
    EXPECT_NEAR(predicted.device_bytes / bytes, 1, 0.1);
    EXPECT_NEAR(sized.device_bytes / bytes, 1, 0.03);
    EXPECT_NEAR(sized.step_seconds / document.step_seconds, 1,
                setting.offloads_activations ? 0.1 : 0.03);
  }
}

// Next to all uniform settings, planned whole.
TEST(Search, FindsTheFastestOfAllSettings) {
  for (const char* memory :
       {"device_memory=700MiB", "device_memory=1500MiB", "device_memory=4GiB"}) {
    SCOPED_TRACE(memory);
    const SearchedJob job({"model=smollm2-135m", "method=full", "max_length=512", "devices=2",
                           "per_device_train_batch_size=4", "offload_params=false", "prefetch=pre",
                           "offload_optimizer=none", memory},
                          "rtx-4090");
    const SearchResult result = search(job.inputs);
    double best = 0;
    std::string which;
    for (const Setting& setting : settings_of(job.recipe, job.target)) {
      if (setting.recompute == formats::Recompute::automatic || setting.rows == 2) continue;
      const PlanDocument document = job.planned(setting);
      if (!fits(job.recipe, document, job.target)) continue;
      const double speed = static_cast<double>(document.tokens_per_step) / document.step_seconds;
      if (speed <= best) continue;
      best = speed;
      which = to_string(overrides_of(setting, job.recipe, job.target));
    }
    if (best == 0) {
      EXPECT_TRUE(result.best.empty());
      continue;
    }
    ASSERT_FALSE(result.best.empty()) << which;
    EXPECT_GE(result.best.front().tokens_per_second, 0.9999 * best) << which;
    for (const FoundPlan& plan : result.best)
      EXPECT_LE(plan.document.device.report.peak_bytes, result.budget.device_bytes);
    EXPECT_TRUE(
        std::ranges::is_sorted(result.best, std::greater<>(), &FoundPlan::tokens_per_second));
  }
}

// A card that counts what is asked of it for each job whose programs are made (once), and for each
// that is laid out (once more).
class CountingCard final : public PlannedCard {
 public:
  using PlannedCard::PlannedCard;
  int64_t alignment_bytes() const override {
    ++count_;
    return PlannedCard::alignment_bytes();
  }
  int64_t count() const { return count_; }

 private:
  mutable int64_t count_ = 0;
};

// What a search costs is the jobs that it plans: the time of a test would depend on its machine.
TEST(Search, PlansFewJobsOfManySettings) {
  const SearchedJob job(with(kShape, {"method=qlora", "device_memory=3GiB"}), "rtx-4090");
  const CountingCard card(*find_hardware("rtx-4090"), job.recipe.device_memory);
  const SearchResult result = search({job.recipe, job.model, card});
  EXPECT_GE(result.judged.size(), 1440U);
  ASSERT_EQ(result.best.size(), 3U);
  EXPECT_LE(result.planned_whole, 5);
  EXPECT_LE(result.sized, 200);
  EXPECT_LE(card.count(), 450);
}

// What fits first, the fastest first, by the figures that are reported.
void expect_in_order(const SearchResult& result, int64_t row_tokens) {
  const auto rank = [&](const JudgedSetting& judged) {
    return std::pair(judged.judgement != Judgement::fits, judged.seconds_per_token(row_tokens));
  };
  EXPECT_TRUE(std::ranges::is_sorted(result.judged, {}, rank));
}

TEST(Search, WhatEndsOnePlanDoesNotEndTheOthers) {
  const SearchedJob job(
      with(kSmall, {"recompute=layer", "strategy=full_shard", "per_device_train_batch_size=4"}),
      "rtx-4090");
  int measured = 0;
  const SearchResult result = search(job.inputs, [&](const Job& /*job*/) -> ProcessBytes {
    if (++measured == 1) throw base::UserError("this one cannot be made ready");
    return {};
  });
  EXPECT_EQ(result.best.size(), kBestPlans);
  const auto refused =
      std::ranges::find(result.judged, Judgement::refused, &JudgedSetting::judgement);
  ASSERT_NE(refused, result.judged.end());
  EXPECT_NE(reason(*refused, result.budget).find("cannot be made ready"), std::string::npos);
  EXPECT_TRUE(std::ranges::none_of(
      result.best, [&](const FoundPlan& plan) { return plan.setting == refused->setting; }));
  expect_in_order(result, job.recipe.max_length);
}

TEST(Search, OfAutomaticRowsKeepsThoseOfAStep) {
  const SearchedJob job(
      with(kSmall, {"recompute=layer", "strategy=ddp", "offload_params=false",
                    "activation_offloading=false", "per_device_train_batch_size=auto",
                    "gradient_accumulation_steps=6"}),
      "rtx-4090");
  std::set<std::pair<int64_t, int64_t>> batches;
  for (const Setting& setting : settings_of(job.recipe, job.target))
    batches.emplace(setting.rows, setting.accumulation);
  EXPECT_EQ(batches, (std::set<std::pair<int64_t, int64_t>>{{1, 6}, {2, 3}, {3, 2}, {6, 1}}));
}

TEST(Search, SaysWhyEachOtherSettingIsRejected) {
  const SearchedJob job(with(kShape, {"method=full", "device_memory=1GiB"}), "rtx-4090");
  const SearchResult result = search(job.inputs);
  EXPECT_EQ(result.judged.size(), settings_of(job.recipe, job.target).size());
  size_t rejected = 0;
  for (const JudgedSetting& judged : result.judged) {
    const std::string why = reason(judged, result.budget);
    EXPECT_EQ(why.empty(), judged.judgement == Judgement::fits);
    if (judged.judgement != Judgement::no_device_memory) continue;
    ++rejected;
    EXPECT_NE(why.find("of 1.00 GiB of the device"), std::string::npos) << why;
  }
  EXPECT_GT(rejected, 100U);
  expect_in_order(result, job.recipe.max_length);
}

}  // namespace
}  // namespace snug::plan
