// What plans make of an optimizer: the bytes of its state, and what is refused before anything is
// loaded.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "models/weights.h"
#include "null_target.h"
#include "plan/job/memory.h"
#include "plan/spec/spec.h"
#include "program/kinds/kind.h"

namespace snug::plan {
namespace {

using testing::contains;
using testing::user_error_of;
using Words = std::vector<std::string>;

constexpr const char* kNoError = "(no error)";  // user_error_of has it

// Host and device are two.
class FarHost : public NullTarget {
 public:
  bool host_reaches_device() const override { return false; }
};

TrainingSpec spec_of(const Words& more, const std::string& yaml = "") {
  Words words{"model=tinyllama-1.1b", "max_length=64", "compute_dtype=bf16", "method=full"};
  words.insert(words.end(), more.begin(), more.end());
  const formats::Recipe recipe = formats::parse_recipe(yaml, "recipe.yaml", words);
  return training_spec(recipe, models::find_model(recipe.model).config, FarHost());
}

std::string error_of(const Words& more, const std::string& yaml = "") {
  return user_error_of([&] { spec_of(more, yaml); });
}

int64_t state_bytes(const Words& more) {
  const MemoryReport memory = read_memory(plan_training(spec_of(more), FarHost()));
  int64_t bytes = 0;
  for (const program::Role role : {program::Role::moment, program::Role::master}) {
    const auto found = memory.device().by_role.find(std::string(program::name_of(role)));
    if (found != memory.device().by_role.end()) bytes += found->second;
  }
  return bytes;
}

TEST(OptimizerPlans, ReserveWhatIsKept) {
  constexpr double kWeights = 1.1e9;
  const auto per_weight = [&](const char* optimizer) {
    return static_cast<double>(state_bytes({optimizer})) / kWeights;
  };
  EXPECT_NEAR(per_weight("optim=adamw"), 12, 0.1);
  EXPECT_NEAR(per_weight("optim=adamw_bf16"), 4, 0.1);
  EXPECT_NEAR(per_weight("optim=adamw_8bit"), 2.03, 0.02);
  EXPECT_NEAR(per_weight("optim=lion"), 8, 0.1);
  EXPECT_NEAR(per_weight("optim=adafactor"), 4.01, 0.05);
  EXPECT_NEAR(per_weight("optim=muon"), 8 + 4 * 0.119, 0.1) << "12 of embedding and head";
}

TEST(OptimizerPlans, RefuseStrategiesThatDivideWhatBelongsTogether) {
  for (const char* strategy : {"zero1", "zero2", "shard_grad_op", "full_shard"}) {
    const std::string sharded = std::string("strategy=") + strategy;
    EXPECT_TRUE(contains(error_of({"optim=adafactor", "devices=2", sharded}),
                         "needs all of a tensor to step it"))
        << strategy;
    EXPECT_EQ(error_of({"optim=lion", "devices=2", sharded}), kNoError);
    EXPECT_EQ(error_of({"optim=muon", "devices=2", sharded}), kNoError);
  }
  EXPECT_EQ(error_of({"optim=adafactor", "devices=2", "strategy=ddp"}), kNoError);
  EXPECT_EQ(error_of({"optim=adafactor", "devices=1", "strategy=zero2"}), kNoError);
}

TEST(OptimizerPlans, StepOnTheHostWhereTheBitsAreTheSame) {
  EXPECT_TRUE(spec_of({"optim=lion", "offload_optimizer=auto"}).streaming.update_on_host);
  EXPECT_FALSE(spec_of({"optim=adafactor", "offload_optimizer=auto"}).streaming.update_on_host);
  EXPECT_TRUE(spec_of({"optim=adafactor", "offload_optimizer=stream"}).streaming.optimizer);
  for (const char* optimizer : {"optim=adafactor", "optim=muon"})
    EXPECT_TRUE(
        contains(error_of({optimizer, "offload_optimizer=host"}), "use offload_optimizer=stream"));
}

// An average takes 4 bytes per weight, like a moment, and is made after each step on the device.
TEST(OptimizerPlans, KeepAnAverageWhereTheRecipeAsksForOne) {
  constexpr double kWeights = 1.1e9;
  for (const char* optimizer : {"optim=adamw", "optim=adamw_8bit", "optim=lion"}) {
    const int64_t more = state_bytes({optimizer, "ema_decay=0.99"}) - state_bytes({optimizer});
    EXPECT_NEAR(static_cast<double>(more) / kWeights, 4, 0.01) << optimizer;
  }
  EXPECT_FALSE(spec_of({"ema_decay=0.99", "offload_optimizer=auto"}).streaming.update_on_host);
  EXPECT_TRUE(contains(error_of({"ema_decay=0.99", "offload_optimizer=host"}),
                       "'ema_decay' asks for averages"));
  EXPECT_TRUE(contains(error_of({"ema_decay=0.99", "optim_in_backward=true", "max_grad_norm=0",
                                 "gradient_accumulation_steps=1"}),
                       "ema_decay asks for an average after each step"));
}

TEST(OptimizerPlans, RefuseKeysOfOtherOptimizers) {
  EXPECT_TRUE(
      contains(error_of({"optim=lion", "adam_epsilon=1e-6"}),
               "'adam_epsilon' is not read by optim=lion, which has adam_beta1, adam_beta2"))
      << error_of({"optim=lion", "adam_epsilon=1e-6"});
  EXPECT_TRUE(contains(error_of({"clip_threshold=2"}), "is not read by optim=adamw"));
  // Defaults, as files that list every key have them, and what a file says for another optimizer
  // than the command line's.
  EXPECT_EQ(error_of({"optim=adafactor", "adam_beta2=0.999", "adam_epsilon=1e-8"}), kNoError);
  EXPECT_EQ(error_of({"optim=adafactor"}, "optim: adamw\nadam_beta2: 0.95\n"), kNoError);
  EXPECT_NE(error_of({}, "optim: adafactor\nadam_beta2: 0.95\n"), kNoError);
}

// Keys of a schedule next to another, and all that is wrong in one run.
TEST(Schedules, KeysOfOthersAreRefused) {
  EXPECT_TRUE(contains(error_of({"min_lr=1e-5"}),
                       "'min_lr' is not read by lr_scheduler_type=cosine, but by "
                       "cosine_with_min_lr, cosine_warmup_with_min_lr; leave it out, or choose one "
                       "of those"));
  EXPECT_TRUE(contains(error_of({"lr_scheduler_type=linear", "num_cycles=2"}),
                       "but by cosine, cosine_with_min_lr, warmup_stable_decay, "
                       "cosine_with_restarts, cosine_warmup_with_min_lr"));
  const std::string both =
      error_of({"min_lr=1e-5", "clip_threshold=2", "num_decay_steps=3", "muon_momentum=0.5"});
  EXPECT_TRUE(contains(both, "'num_decay_steps' is not read by")) << both;
  EXPECT_TRUE(contains(both, "'muon_momentum' is not read by")) << both;
  EXPECT_TRUE(contains(both, "'min_lr' is not read by")) << both;
  EXPECT_TRUE(contains(both, "'clip_threshold' is not read by")) << both;
}

TEST(OptimizerPlans, HaveTheDefaultsOfTheOptimizer) {
  EXPECT_EQ(spec_of({"optim=lion"}).update.beta2, 0.99);
  EXPECT_EQ(spec_of({}).update.beta2, 0.999);
  EXPECT_EQ(spec_of({"optim=lion", "adam_beta2=0.95"}).update.beta2, 0.95);
  EXPECT_EQ(spec_of({"optim=adafactor"}).update.decay_rate, -0.8);
  EXPECT_EQ(spec_of({"optim=adafactor", "clip_threshold=0.5"}).update.clip_threshold, 0.5);
}

TEST(OptimizerPlans, ReadWhatMuonIsGiven) {
  const methods::MuonOptions muon =
      spec_of({"optim=muon", "muon_momentum=0.9", "nesterov=false", "ns_steps=3",
               "ns_coefficients=2,-1.5,0.5", "adjust_lr_fn=match_rms_adamw"})
          .update.muon;
  EXPECT_EQ(muon.momentum, 0.9);
  EXPECT_FALSE(muon.nesterov);
  EXPECT_EQ(muon.steps, 3);
  EXPECT_EQ(muon.coefficients, (std::array{2.0, -1.5, 0.5}));
  EXPECT_EQ(muon.adjust_learning_rate, formats::AdjustLearningRate::match_rms_adamw);
  EXPECT_TRUE(muon.bf16);
  EXPECT_TRUE(contains(error_of({"optim=muon", "ns_coefficients=2,-1.5"}),
                       "has 2 numbers; expected 3: a, b and c"));
  EXPECT_TRUE(
      contains(error_of({"optim=muon", "ns_coefficients=2,0,0.5"}), "neither a nor b may be 0"));
  EXPECT_TRUE(contains(error_of({"optim=lion", "ns_steps=3"}), "is not read by optim=lion"));
}

// Three products a step and matrix, of which the plan has the time; and no more memory than two
// matrices and two squares of the largest, whatever the number of matrices.
TEST(OptimizerPlans, HaveTheProductsOfMuon) {
  const TrainingSpec spec = spec_of({"optim=muon"});
  const Job job = plan_training(spec, FarHost());
  const program::Program& update = *job.find(program::ProgramName::update);
  double flops = 0;
  for (const program::Operation& operation : update.operations)
    if (program::traits_of(operation).category == program::Category::product)
      flops += program::cost({update, operation}, {}).flops;
  double expected = 0;
  for (const models::Weight& weight : models::weights_of(spec.model)) {
    if (weight.layer < 0 || weight.shape.rank() != 2) continue;
    const auto side = static_cast<double>(std::min(weight.shape[0], weight.shape[1]));
    const auto elements = static_cast<double>(weight.shape.elements());
    expected += 5 * (4 * elements * side + 2 * side * side * side);
  }
  EXPECT_NEAR(flops / expected, 1, 1e-9);
  const auto place = static_cast<size_t>(&update - job.programs.data());
  const int64_t live =
      job.layout.spaces[static_cast<size_t>(program::Space::device)].live_bytes.at(place);
  const int64_t matrix = int64_t{5632} * 2048 * 2;
  const int64_t square = int64_t{2048} * 2048 * 2;
  EXPECT_GE(live, 2 * matrix + square);
  EXPECT_LE(live, 2 * matrix + 2 * square + 4096) << "and scalars";
}

}  // namespace
}  // namespace snug::plan
