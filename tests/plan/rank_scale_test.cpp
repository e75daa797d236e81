// What a plan costs does not grow with the number of ranks: all run the same program, so that of
// one is planned, whatever their number.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "../base/processor_time.h"
#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"

namespace snug::plan {
namespace {

using Words = std::vector<std::string>;

double seconds_of_plan(const Words& words) {
  const backends::cuda::PlannedCard card(*backends::cuda::find_hardware("h100"), 0);
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  const double begin = testing::processor_seconds();
  const PlannedTraining planned = assemble_training({recipe, model, card});
  const double seconds = testing::processor_seconds() - begin;
  EXPECT_GT(planned.document.step_seconds, 0);
  return seconds;
}

// The least of several, in turns.
TEST(RankScale, APlanOf1024RanksTakesAtMostTwiceThatOfOne) {
  struct Job {
    Words words;
    std::vector<const char*> strategies;
  };
  const std::vector<Job> jobs{
      {{"model=llama-3.1-8b", "method=full", "max_length=2048", "recompute=layer"},
       {"zero2", "full_shard"}},
      {{"model=llama-2-70b", "method=qlora", "max_length=2048", "recompute=layer"},
       {"full_shard", "hybrid_full_shard"}}};
  for (const Job& job : jobs)
    for (const char* strategy : job.strategies) {
      Words many = job.words;
      for (const char* word : {"devices=8", "nodes=128"}) many.emplace_back(word);
      many.push_back(fmt::format("strategy={}", strategy));
      double one_seconds = std::numeric_limits<double>::max();
      double many_seconds = std::numeric_limits<double>::max();
      // On a machine whose speed changes the least takes some rounds to be seen.
      constexpr int kRounds = 3;
      constexpr int kMostRounds = 15;
      for (int round = 0;
           round < kRounds || (round < kMostRounds && many_seconds > 2 * one_seconds); ++round) {
        one_seconds = std::min(one_seconds, seconds_of_plan(job.words));
        many_seconds = std::min(many_seconds, seconds_of_plan(many));
      }
      EXPECT_LE(many_seconds, 2 * one_seconds) << job.words.front() << " by " << strategy;
      RecordProperty(fmt::format("{}_{}", job.words.front(), strategy),
                     fmt::format("{:.2f}", many_seconds / one_seconds));
    }
}

}  // namespace
}  // namespace snug::plan
