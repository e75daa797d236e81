// From recipes to the ranks of a job, and what a plan says of them.
#include "plan/job/rank_grid.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "null_target.h"
#include "plan/job/job.h"
#include "plan/spec/spec.h"
#include "words.h"

namespace snug::plan {
namespace {

using passes::GradientSharding;
using passes::ShardingOptions;
using passes::WeightSharding;
using program::RankGroup;

ShardingOptions grid_of(std::vector<std::string> words) {
  words.emplace_back("model=smollm2-135m");
  return rank_grid(formats::load_recipe("", words));
}

TEST(RankGrid, IsOneRankWithoutDevices) {
  EXPECT_EQ(grid_of({}).ranks(), 1);
  EXPECT_EQ(grid_of({"strategy=full_shard"}).ranks(), 1);
}

TEST(RankGrid, FollowsTheStrategy) {
  const ShardingOptions ddp = grid_of({"devices=4", "strategy=ddp"});
  EXPECT_EQ(ddp.shards, 1);
  EXPECT_EQ(ddp.replicas, 4);
  EXPECT_FALSE(ddp.shards_state());
  const ShardingOptions zero2 = grid_of({"devices=4", "zero_stage=2"});
  EXPECT_TRUE(zero2.shards_state());
  EXPECT_FALSE(zero2.shards_weights());
  const ShardingOptions full = grid_of({"devices=4", "nodes=2", "strategy=full_shard"});
  EXPECT_EQ(full.shards, 8);
  EXPECT_EQ(full.weights, WeightSharding::layer_by_layer);
  EXPECT_EQ(full.nodes_of(RankGroup::shards), 2);
}

TEST(RankGrid, HybridsShardWithinAMachine) {
  const ShardingOptions grid = grid_of({"devices=4", "nodes=3", "strategy=hybrid_shard_grad_op"});
  EXPECT_EQ(grid.shards, 4);
  EXPECT_EQ(grid.replicas, 3);
  EXPECT_EQ(grid.weights, WeightSharding::program_by_program);
  EXPECT_EQ(grid.gradients, GradientSharding::scattered);
  EXPECT_EQ(grid.nodes_of(RankGroup::shards), 1);
  EXPECT_EQ(grid.nodes_of(RankGroup::replicas), 3);
  EXPECT_EQ(grid.nodes_of(RankGroup::all), 3);
}

TEST(RankGrid, RefusesWhatCannotBeDivided) {
  EXPECT_THROW(grid_of({"devices=4", "strategy=hybrid_full_shard", "shard_devices=3"}),
               base::UserError);
  EXPECT_THROW(grid_of({"devices=4", "strategy=full_shard", "shard_devices=2"}), base::UserError);
  EXPECT_THROW(grid_of({"devices=4", "strategy=ddp", "shard_devices=2"}), base::UserError);
  EXPECT_EQ(grid_of({"devices=4", "strategy=ddp", "shard_devices=1"}).replicas, 4);
}

TEST(RankGrid, ComparesTheRowsOfAStepOfAllDevices) {
  const auto error_of = [](std::vector<std::string> words) {
    words.emplace_back("model=smollm2-135m");
    return snug::testing::user_error_of([&] { check_step_rows(formats::load_recipe("", words)); });
  };
  const std::vector<std::string> step{"per_device_train_batch_size=2",
                                      "gradient_accumulation_steps=4", "train_batch_size=64"};
  EXPECT_EQ(error_of(with(step, {"devices=4", "nodes=2"})), "(no error)");
  EXPECT_TRUE(snug::testing::contains(error_of(with(step, {"devices=4"})),
                                      "is 64, but 4 devices, per_device_train_batch_size 2 and "
                                      "gradient_accumulation_steps 4 make 32 rows"));
  EXPECT_TRUE(snug::testing::contains(error_of(step), "make 8 rows"));
  // Rows that are chosen are those of gradient_accumulation_steps.
  EXPECT_EQ(error_of({"per_device_train_batch_size=auto", "gradient_accumulation_steps=32",
                      "train_batch_size=64", "devices=2"}),
            "(no error)");
}

Job plan_of(const std::vector<std::string>& words) {
  const NullTarget target;
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  return plan_training(training_spec(recipe, model.config, target), target);
}

const std::vector<std::string> kFull8B{"model=llama-3.1-8b", "method=full", "max_length=1024",
                                       "recompute=layer"};

// A rank's program is every rank's: its length does not grow with their number.
TEST(RankGrid, ManyRanksArePlannedAsFewAre) {
  const Job two = plan_of(with(kFull8B, {"devices=2", "strategy=full_shard"}));
  const Job many = plan_of(with(kFull8B, {"devices=8", "nodes=128", "strategy=full_shard"}));
  ASSERT_EQ(two.programs.size(), many.programs.size());
  for (size_t i = 0; i < two.programs.size(); ++i)
    EXPECT_EQ(two.programs[i].operations.size(), many.programs[i].operations.size())
        << two.programs[i].name;
}

// The formula of docs/many_devices.md: what lasts is an eighth, padded; next to it lie two gathered
// layers, or one and the embedding or the head, gradients of as much, scratch and activations.
TEST(RankGrid, FullShardHoldsWhatItsFormulaSays) {
  const auto step_words = with(kFull8B, {"optim=adamw"});
  const passes::SpaceLayout one = plan_of(step_words).layout.spaces[0];
  const passes::SpaceLayout eight =
      plan_of(with(step_words, {"devices=8", "strategy=full_shard"})).layout.spaces[0];
  constexpr double kParameters = 8.03e9;
  constexpr double kLayer = 218.1e6;
  constexpr double kHead = 525.4e6;  // and the embedding
  constexpr double kStateBytes = 2 + 4 + 4 + 4 + 4;
  constexpr double kUnits = kHead + kLayer;
  constexpr double kScratch = 64e6;
  const double states = kParameters * kStateBytes / 8;
  const auto lasting =
      static_cast<double>(eight.run_bytes + eight.of(program::Stage::training).step_bytes);
  EXPECT_GT(lasting, 0.999 * states);
  EXPECT_LT(lasting, 1.002 * states);
  const double bound = kUnits * 2 + kUnits * 4 + kScratch +
                       static_cast<double>(one.of(program::Stage::training).program_bytes);
  EXPECT_LE(static_cast<double>(eight.of(program::Stage::training).program_bytes), bound);
  // Of that, neither all gathered weights nor all gradients.
  EXPECT_LE(static_cast<double>(eight.of(program::Stage::training).program_bytes),
            0.5 * kParameters * 2);
}

}  // namespace
}  // namespace snug::plan
