// The card of a merged folder has the drift of every variant, and which of them the folder holds.
#include "cli/merge_card.h"

#include <gtest/gtest.h>

namespace snug::cli {
namespace {

TEST(MergeCard, HasTheDriftOfEveryVariant) {
  MergeJob job;
  job.recipe.model = "examples/wordnet";
  job.recipe.output_dir = "runs/whole/";
  job.inputs.model = "examples/wordnet";
  MergeOutcome outcome;
  outcome.variants = {
      {.base = MergedInto::sixteen_bit, .drift = generate::Drift{.tokens = 10, .mean_kl = 0.5}},
      {.base = MergedInto::nf4, .drift = generate::Drift{.tokens = 10, .mean_kl = 0.25}}};
  outcome.kept = 1;
  const convert::CardInputs card = merge_card(job, outcome);
  EXPECT_EQ(card.title, "whole");
  EXPECT_FALSE(card.has_encoder);
  ASSERT_EQ(card.drifts.size(), 2U);
  EXPECT_EQ(card.drifts[0].variant, "into the model in 16 bits");
  EXPECT_FALSE(card.drifts[0].is_kept);
  EXPECT_EQ(card.drifts[1].mean_kl, 0.25);
  EXPECT_TRUE(card.drifts[1].is_kept);
  // What was not measured has no row.
  outcome.variants[0].drift.reset();
  EXPECT_EQ(merge_card(job, outcome).drifts.size(), 1U);
}

}  // namespace
}  // namespace snug::cli
