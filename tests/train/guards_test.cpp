// Each guard stops what it is there for and nothing else, and can be switched off.
#include "train/guards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "methods/objective.h"

namespace snug::train {
namespace {

using formats::Guard;
using formats::GuardSet;
using testing::contains;

using LossOfStep = std::function<double(int64_t)>;

// The step at which a run with these losses and norms stops, and why; 0: it does not.
struct Stop {
  int64_t step = 0;
  std::string why;
};

Stop stop_of(
    const GuardRules& rules, int64_t steps, const LossOfStep& loss,
    const LossOfStep& norm = [](int64_t) { return 1; }) {
  runtime::RunHistory history;
  for (int64_t step = 1; step <= steps; ++step) {
    const StepMetrics metrics{.step = step, .loss = loss(step), .grad_norm = norm(step)};
    if (const auto what = watch_step(rules, metrics, history)) return {step, *what};
  }
  return {};
}

GuardRules all_but(Guard guard) {
  GuardRules rules{.on = formats::kAllGuards};
  rules.on.set(guard, false);
  return rules;
}

const GuardRules kAll{.on = formats::kAllGuards};

// A measure of answers that is bad in every second step, in which answers are made, except at step
// 19, where it is `good`.
struct AnswerCase {
  Guard guard;
  std::string name;
  double bad;
  double good;
  std::string advice;
};

struct AnswerStop {
  Stop stop;
  std::vector<std::string> warnings;
  bool was_sound = true;  // before the stop
};

AnswerStop stop_of_answers(const GuardRules& rules, const AnswerCase& measured, bool stays_bad) {
  runtime::RunHistory history;
  AnswerStop found;
  for (int64_t step = 1; step <= 60; ++step) {
    const NamedMeasure share{measured.name,
                             step == 19 && !stays_bad ? measured.good : measured.bad};
    const auto measures = std::span(&share, step % 2 == 1 ? 1 : 0);
    const StepMetrics metrics{.step = step, .loss = 0.1, .grad_norm = 1, .of_data = measures};
    if (const auto what = watch_step(rules, metrics, history)) {
      found.stop = {step, *what};
      return found;
    }
    found.was_sound = is_sound(history);
    for (std::string& warning : warnings_of(rules, metrics, history))
      found.warnings.push_back(std::move(warning));
  }
  return found;
}

// Steps between generations do not count, and a good one begins anew.
TEST(Guards, AnswersThatStayBad) {
  const GuardRules rules{.on = formats::kAllGuards, .min_entropy = 0.25, .max_kl = 2};
  for (const AnswerCase& measured :
       {AnswerCase{Guard::equal_rewards, "frac_reward_zero_std", 1, 0.5, "max_resamples"},
        AnswerCase{Guard::cut_answers, "completions/clipped_ratio", 1, 0.99, "soft_overlong"},
        AnswerCase{Guard::low_entropy, "entropy", 0.24, 0.25, "below min_entropy=0.25"},
        AnswerCase{Guard::high_kl, "kl", 2.5, 2, "its kl is 2.5"}}) {
    SCOPED_TRACE(measured.name);
    const AnswerStop stays = stop_of_answers(rules, measured, true);
    EXPECT_EQ(stays.stop.step, 2 * kAnswersInARow - 1);
    EXPECT_TRUE(contains(stays.stop.why, measured.advice)) << stays.stop.why;
    EXPECT_TRUE(
        contains(stays.stop.why, "guards=no_" + std::string(base::word_of(measured.guard))));
    EXPECT_EQ(stays.was_sound, measured.guard == Guard::equal_rewards)
        << "a model that learned nothing is as sound as before";
    ASSERT_EQ(stays.warnings.size(), 1);
    EXPECT_TRUE(contains(stays.warnings[0], "warning: step 9: ")) << stays.warnings[0];
    EXPECT_TRUE(contains(stays.warnings[0], "With 20 in a row the run stops"));
    const AnswerStop once_good = stop_of_answers(rules, measured, false);
    EXPECT_EQ(once_good.stop.step, 19 + 2 * kAnswersInARow);
    EXPECT_EQ(once_good.warnings.size(), 2);
    GuardRules without = rules;
    without.on.set(measured.guard, false);
    const AnswerStop off = stop_of_answers(without, measured, true);
    EXPECT_EQ(off.stop.step, 0);
    EXPECT_TRUE(off.warnings.empty() && off.was_sound);
  }
  // Without bounds any entropy and any distance will do.
  for (const char* name : {"entropy", "kl"})
    EXPECT_EQ(stop_of_answers(kAll, {Guard::high_kl, name, 1e9, 0, ""}, true).stop.step, 0);
}

TEST(Guards, ALossOfZero) {
  const auto from = [](int64_t first) {
    return [=](int64_t step) { return step >= first ? 0.0 : 2.0; };
  };
  const Stop at_once = stop_of(kAll, 50, from(1));
  EXPECT_EQ(at_once.step, 1);
  EXPECT_TRUE(contains(at_once.why, "step 1: the loss is exactly 0, so nothing is learned"));
  EXPECT_TRUE(contains(at_once.why, "guards=no_zero_loss"));
  EXPECT_EQ(stop_of(kAll, 50, from(20)).step, 19 + kZeroSteps);
  EXPECT_EQ(stop_of(all_but(Guard::zero_loss), 50, from(1)).step, 0);
  // Single batches that are known by heart.
  EXPECT_EQ(stop_of(kAll, 90, [](int64_t step) { return step % 3 == 0 ? 1.0 : 0.0; }).step, 1);
  EXPECT_EQ(stop_of(kAll, 90, [](int64_t step) { return step % 3 == 1 ? 1.0 : 0.0; }).step, 0);
}

TEST(Guards, ANormOfZero) {
  const auto falling = [](int64_t step) { return 3.0 / static_cast<double>(step); };
  const Stop stop = stop_of(kAll, 50, falling, [](int64_t) { return 0; });
  EXPECT_EQ(stop.step, 1);
  EXPECT_TRUE(contains(stop.why, "the gradient norm is exactly 0, so no weight changes"));
  EXPECT_EQ(stop_of(all_but(Guard::zero_norm), 50, falling, [](int64_t) { return 0; }).step, 0);
}

TEST(Guards, ALossThatExplodes) {
  const auto explodes = [](int64_t step) {
    return step < 30 ? 3.0 - 0.05 * static_cast<double>(step) : 20.0;
  };
  const Stop stop = stop_of(kAll, 90, explodes);
  EXPECT_EQ(stop.step, 29 + kAll.loss_increase_steps);
  EXPECT_TRUE(contains(stop.why, "has been above 3 times its best"));
  EXPECT_EQ(stop_of(all_but(Guard::loss_increase), 90, explodes).step, 0);
  const GuardRules strict{
      .on = formats::kAllGuards, .max_loss_increase = 1.1, .loss_increase_steps = 2};
  EXPECT_EQ(stop_of(strict, 90, explodes).step, 31);
}

// Losses that jump, or rise from what was learned by heart, are no fault.
TEST(Guards, NotALossThatJumps) {
  EXPECT_EQ(stop_of(kAll, 400, [](int64_t step) { return step % 7 == 0 ? 0.01 : 2.0; }).step, 0)
      << "one easy batch is not its best";
  EXPECT_EQ(stop_of(kAll, 400, [](int64_t step) { return step % 19 == 0 ? 1.0 : 30.0; }).step, 0);
  EXPECT_EQ(stop_of(kAll, 400,
                    [](int64_t step) { return step < 200 ? 2.0 / static_cast<double>(step) : 0.5; })
                .step,
            0)
      << "it is below what it was at first";
}

TEST(Guards, AnEvaluationThatIsWorseThanAtTheStart) {
  const auto stop_at = [](const GuardRules& rules, const std::vector<double>& losses,
                          size_t last = 99) -> int64_t {
    runtime::RunHistory history;
    for (size_t i = 0; i < losses.size(); ++i)
      if (watch_evaluation(rules, {"loss", losses[i]}, static_cast<int64_t>(10 * i), i == last,
                           history))
        return static_cast<int64_t>(10 * i);
    return 0;
  };
  EXPECT_EQ(stop_at(kAll, {2, 2.1, 1.9, 2.1, 2.2, 2.3}), 40);
  EXPECT_EQ(stop_at(kAll, {2, 1.9, 2.1}), 0);
  EXPECT_EQ(stop_at(kAll, {2, 1.9, 2.1}, 2), 20) << "the last of the run";
  EXPECT_EQ(stop_at(all_but(Guard::worse_evaluation), {2, 2.1, 2.2, 2.3}), 0);
  EXPECT_EQ(stop_at(kAll, {2, NAN}), 10);
  EXPECT_EQ(stop_at(all_but(Guard::not_finite), {2, NAN, 1}), 0);
  // Nobody knows what it was at the start.
  runtime::RunHistory history;
  for (int64_t step = 1; step < 9; ++step)
    EXPECT_FALSE(
        watch_evaluation(kAll, {"loss", static_cast<double>(step)}, step, step == 8, history));
}

// Of rewards the greatest is the best, and draws may make a small difference.
TEST(Guards, AnEvaluationOfRewardsThatAreLessThanAtTheStart) {
  const auto is_stopped = [](const std::vector<double>& rewards) {
    runtime::RunHistory history;
    std::optional<std::string> why;
    for (size_t i = 0; i < rewards.size() && !why; ++i)
      why = watch_evaluation(
          kAll, {.name = "reward", .value = rewards[i], .is_greatest = true, .by_chance = 0.25},
          static_cast<int64_t>(i), false, history);
    EXPECT_TRUE(!why || contains(*why, "the reward of the evaluation is")) << *why;
    return why.has_value();
  };
  EXPECT_FALSE(is_stopped({1, 0.75, 0.75, 0.75}));
  EXPECT_FALSE(is_stopped({1, 0.5, 2, 0.5, 9, 9}));
  EXPECT_TRUE(is_stopped({1, 0.7, 0.7}));
}

TEST(Guards, SayWhereToGoOnFrom) {
  runtime::RunHistory history;
  EXPECT_TRUE(is_sound(history));
  EXPECT_TRUE(contains(stopped_by_guard("step 9: bad", history).what(), "No sound checkpoint"));
  history.sound_checkpoint = 5;
  const base::UserError error = stopped_by_guard("step 9: bad", history);
  EXPECT_EQ(error.exit_code(), 4);
  EXPECT_TRUE(contains(error.what(), "The last sound checkpoint is that of step 5"));
  // What is written while the loss is above its best is no place to go on from.
  watch_step(kAll, {.step = 1, .loss = 1, .grad_norm = 1}, history);
  watch_step(kAll, {.step = 2, .loss = 9, .grad_norm = 1}, history);
  EXPECT_FALSE(is_sound(history));
}

TEST(Guards, AreNamedByTheRecipe) {
  const auto names = [](const std::string& yaml) {
    const GuardSet guards = formats::guards_of(formats::parse_recipe(yaml, "r.yaml"));
    std::string text;
    for (const std::string_view word : base::all_words<Guard>())
      if (guards.has(*base::from_word<Guard>(word))) text += std::string(word) + " ";
    return text;
  };
  const std::string all =
      "not_finite zero_loss zero_norm idle_adapter loss_increase worse_evaluation equal_rewards "
      "cut_answers low_entropy high_kl ";
  EXPECT_EQ(names(""), all);
  EXPECT_EQ(names("guards: true"), all);
  EXPECT_EQ(names("guards: none"), "");
  EXPECT_EQ(names("guards: false"), "");
  EXPECT_EQ(names("guards: []"), "");
  EXPECT_EQ(names("guards: not_finite"), "not_finite ");
  EXPECT_EQ(names("guards: [all, no_zero_norm]"),
            "not_finite zero_loss idle_adapter loss_increase worse_evaluation equal_rewards "
            "cut_answers low_entropy high_kl ");
  EXPECT_EQ(names("guards: [no_zero_norm, no_zero_loss, no_idle_adapter]"),
            "not_finite loss_increase worse_evaluation equal_rewards cut_answers low_entropy "
            "high_kl ");
}

// Every objective says which are faults of it.
TEST(Guards, AreAColumnOfTheObjectives) {
  for (const formats::Objective kind :
       {formats::Objective::next_token, formats::Objective::dpo, formats::Objective::orpo,
        formats::Objective::kto, formats::Objective::simpo})
    EXPECT_TRUE(methods::objective_of(kind).guards.has(Guard::not_finite));
  const GuardSet some{Guard::not_finite, Guard::zero_loss};
  EXPECT_FALSE(some.both({Guard::not_finite}).has(Guard::zero_loss));
  EXPECT_TRUE(some.both({Guard::not_finite}).has(Guard::not_finite));
}

}  // namespace
}  // namespace snug::train
