// What a refusal's advice costs, counted in operations that the target decides about: all that is
// planned is lowered, and what planning takes grows with what is lowered.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"
#include "words.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;

class CountingCard : public PlannedCard {
 public:
  using PlannedCard::PlannedCard;
  program::Attributes decide(const program::OperationView& view) const override {
    ++decided_;
    return PlannedCard::decide(view);
  }
  int64_t take_decided() { return std::exchange(decided_, 0); }

 private:
  mutable int64_t decided_ = 0;
};

struct Cost {
  double advice = 0;  // in plans of the job as it is given
  Verdict verdict;
};

Cost cost_of(Words words) {
  CountingCard card(*find_hardware("rtx-4090"), 0);
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  plan_training(training_spec(recipe, model.config, card), card);
  const auto once = static_cast<double>(card.take_decided());
  const TrainingInputs inputs{recipe, model, card};
  const PlannedTraining planned = assemble_training(inputs);
  Cost cost;
  card.take_decided();  // of the plan, whose window is chosen once
  cost.verdict = planned.verdict();
  cost.advice = static_cast<double>(card.take_decided()) / once;
  return cost;
}

const Words kOffloaded{
    "model=llama-3.1-8b",     "method=full",    "max_length=8192", "offload_params=true",
    "offload_optimizer=auto", "max_segments=1", "recompute=none"};

// Neither what keeps the job from fitting, nor a window that the user gives, makes it dear.
TEST(AdviceCost, IsThatOfAFewPlansWhereTheJobIsOffloaded) {
  for (const Words& more :
       {Words{"host_memory=160GiB"}, Words{"host_memory=64GiB"}, Words{"host_memory=8GiB"},
        Words{"host_memory=160GiB", "offload_window=1GiB"}}) {
    const Cost cost = cost_of(with(kOffloaded, more));
    ASSERT_FALSE(cost.verdict.fits);
    EXPECT_LT(cost.advice, 18) << more.front() << ": " << cost.verdict.message;
  }
}

TEST(AdviceCost, IsThatOfAFewPlansWhereTheJobIsNot) {
  const Cost cost = cost_of({"model=llama-3.1-70b", "method=lora", "max_length=4096"});
  ASSERT_FALSE(cost.verdict.fits);
  EXPECT_LT(cost.advice, 8) << cost.verdict.message;
}

// In plans of the job that computes nothing again.
double cost_of_choice(const Words& words) {
  CountingCard card(*find_hardware("h100"), formats::load_recipe("", words).device_memory);
  const auto cost_with = [&](const Words& more) {
    const formats::Recipe recipe = formats::load_recipe("", with(words, more));
    const models::ModelSource model = models::find_model(recipe.model);
    card.take_decided();
    assemble_training({recipe, model, card});
    return static_cast<double>(card.take_decided());
  };
  return cost_with({}) / cost_with({"recompute=none"});
}

TEST(ChoiceCost, IsOnePlanWhereEverythingHasRoom) {
  EXPECT_LT(cost_of_choice({"model=llama-3.1-8b", "method=lora", "max_length=2048"}), 1.1);
}

TEST(ChoiceCost, IsThatOfAFewPlansWhereItDoesNot) {
  EXPECT_LT(cost_of_choice(
                {"model=llama-3.1-8b", "method=lora", "max_length=8192", "device_memory=40GiB"}),
            10);
  EXPECT_LT(cost_of_choice({"model=llama-3.1-70b", "method=qlora", "max_length=8192"}), 8);
}

}  // namespace
}  // namespace snug::plan
