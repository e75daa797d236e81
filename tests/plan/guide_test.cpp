// The order in which a practitioners' guide for FSDP and QLoRA tries settings by hand, next to
// `snug search`. At one row in a micro-batch the guide takes the first setting that fits: ddp; with
// recomputed layers; shard_grad_op, and with them; full_shard, and with them; with weights and
// gradients offloaded; with activations offloaded too. Then it raises the micro-batch as far as
// there is memory, and tries the next setting at a larger one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <limits>
#include <optional>

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "plan/choice/fit.h"
#include "plan/choice/search.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;
using formats::OffloadOptimizer;
using formats::Recompute;
using formats::Strategy;

struct Pair {
  const char* model;
  const char* method;
  const char* card;
  int devices;
};
void PrintTo(const Pair& pair, std::ostream* out) {
  *out << pair.model << " " << pair.method << " on " << pair.devices << "x " << pair.card;
}

class Guide : public ::testing::TestWithParam<Pair> {
 protected:
  Guide()
      : recipe_(formats::load_recipe(
            "",
            {fmt::format("model={}", GetParam().model), fmt::format("method={}", GetParam().method),
             fmt::format("devices={}", GetParam().devices), "max_length=2048", "max_segments=1"})),
        model_(models::find_model(recipe_.model)),
        target_(*find_hardware(GetParam().card), 0),
        inputs_{recipe_, model_, target_},
        figures_(inputs_, settings_of(recipe_, target_)),
        budget_{target_.capacity_bytes(program::Space::device),
                std::numeric_limits<int64_t>::max()} {}

  std::vector<Setting> tries() const {
    const bool is_full = recipe_.method == formats::Method::full;
    std::vector<Setting> all;
    for (const Strategy strategy : {Strategy::ddp, Strategy::shard_grad_op, Strategy::full_shard})
      for (const Recompute mode : {Recompute::none, Recompute::layer})
        all.push_back({.strategy = strategy, .recompute = mode});
    Setting offloaded = all.back();
    offloaded.offloads_params = true;
    if (is_full) offloaded.optimizer = OffloadOptimizer::stream;
    all.push_back(offloaded);
    all.push_back(offloaded);
    all.back().offloads_activations = true;
    return all;
  }

  bool fits_by_size(const Setting& setting) {
    return figures_.sized(setting, budget_).device_bytes <=
           static_cast<double>(budget_.device_bytes);
  }

  Setting with_most_rows(Setting setting) {
    for (Setting more = setting; more.rows < 128;) {
      more.rows *= 2;
      if (!fits_by_size(more)) break;
      setting = more;
    }
    return setting;
  }

  // Whole; with fewer rows where its arena takes more than its size said. Nothing: none fits.
  std::optional<FoundPlan> planned(Setting setting) {
    for (; setting.rows >= 1; setting.rows /= 2) {
      FoundPlan plan{setting, figures_.recipe_with(setting), {}, 0};
      plan.document = assemble_training({plan.recipe, model_, target_}).document;
      if (!fits(plan.recipe, plan.document, target_)) continue;
      plan.tokens_per_second =
          static_cast<double>(plan.document.tokens_per_step) / plan.document.step_seconds;
      return plan;
    }
    return std::nullopt;
  }

  // What the guide ends with.
  std::optional<FoundPlan> walk() {
    const std::vector<Setting> all = tries();
    size_t first = 0;
    while (first < all.size() && !fits_by_size(all[first])) ++first;
    if (first == all.size()) return std::nullopt;
    const Setting chosen = with_most_rows(all[first]);
    std::optional<FoundPlan> best = planned(chosen);
    if (first + 1 == all.size()) return best;
    const Setting next = with_most_rows(all[first + 1]);
    if (next.rows <= chosen.rows) return best;
    std::optional<FoundPlan> other = planned(next);
    if (other && (!best || other->tokens_per_second > best->tokens_per_second)) return other;
    return best;
  }

  std::string text_of(const FoundPlan& plan) const {
    return fmt::format("{:.0f} tokens/s, {}: {}", plan.tokens_per_second,
                       readable_bytes(plan.document.device.report.peak_bytes),
                       to_string(overrides_of(plan.setting, recipe_, target_)));
  }

  const formats::Recipe recipe_;
  const models::ModelSource model_;
  const PlannedCard target_;
  const TrainingInputs inputs_;
  SettingFigures figures_;
  const Budget budget_;
};

TEST_P(Guide, EndsWithNothingFasterThanTheSearch) {
  const std::optional<FoundPlan> guided = walk();
  const SearchResult found = search(inputs_);
  std::cout << ::testing::PrintToString(GetParam())
            << "\n  guide:  " << (guided ? text_of(*guided) : "nothing fits")
            << "\n  search: " << (found.best.empty() ? "nothing fits" : text_of(found.best.front()))
            << "\n  "
            << fmt::format("{} settings judged in {:.2f} s, {} sized, {} planned whole in {:.2f} s",
                           found.judged.size(), found.judging_seconds, found.sized,
                           found.planned_whole, found.planning_seconds)
            << "\n";
  ASSERT_TRUE(guided);
  ASSERT_FALSE(found.best.empty());
  EXPECT_GE(found.best.front().tokens_per_second, guided->tokens_per_second);
}

INSTANTIATE_TEST_SUITE_P(Some, Guide, ::testing::Values(Pair{"llama-2-7b", "lora", "rtx-3090", 2}));
INSTANTIATE_TEST_SUITE_P(More, Guide,
                         ::testing::Values(Pair{"llama-2-7b", "qlora", "rtx-3090", 2},
                                           Pair{"yi-34b", "qlora", "rtx-4090", 2},
                                           Pair{"yi-34b", "qlora", "rtx-3090", 2},
                                           Pair{"llama-2-70b", "qlora", "rtx-3090", 2},
                                           Pair{"llama-2-7b", "lora", "rtx-4090", 2},
                                           Pair{"llama-2-70b", "qlora", "rtx-4090", 2},
                                           Pair{"llama-2-70b", "qlora", "rtx-a5000", 2},
                                           Pair{"llama-2-70b", "qlora", "rtx-a5000", 8},
                                           Pair{"llama-2-70b", "qlora", "rtx-6000-ada", 2},
                                           Pair{"llama-2-7b", "full", "h100", 4},
                                           Pair{"llama-2-70b", "qlora", "h100", 4}));

}  // namespace
}  // namespace snug::plan
