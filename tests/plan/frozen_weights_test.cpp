// What a full job freezes: from the recipe's patterns to a plan in which nothing frozen has a
// gradient or optimizer state, and nothing below what trains is gone through backwards.
#include "plan/spec/frozen_weights.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "models/weights.h"
#include "null_target.h"
#include "plan/job/layer_growth.h"
#include "plan/job/memory.h"
#include "plan/spec/spec.h"
#include "plan/time/calibration_file.h"
#include "program/kinds/kind.h"

namespace snug::plan {
namespace {

using program::Phase;
using program::ProgramName;
using program::Role;
using testing::contains;
using testing::user_error_of;
using Words = std::vector<std::string>;

// By default an untied model of 22 layers.
TrainingSpec spec_of(const Words& more, const char* method = "full",
                     const char* model = "tinyllama-1.1b") {
  Words words{fmt::format("model={}", model), "max_length=2048", "compute_dtype=bf16",
              fmt::format("method={}", method)};
  words.insert(words.end(), more.begin(), more.end());
  const formats::Recipe recipe = formats::load_recipe("", words);
  TrainingSpec spec = training_spec(recipe, models::find_model(recipe.model).config, NullTarget());
  spec.verify = true;
  return spec;
}

Job plan_of(const Words& more) { return plan_training(spec_of(more), NullTarget()); }

std::string error_of(const Words& more, const char* method = "full",
                     const char* model = "tinyllama-1.1b") {
  return user_error_of([&] { spec_of(more, method, model); });
}

int64_t role_bytes(const Job& job, Role role) {
  const MemoryReport memory = read_memory(job);
  const auto& by_role = memory.device().by_role;
  const auto found = by_role.find(std::string(program::name_of(role)));
  return found == by_role.end() ? 0 : found->second;
}

// A router's corrections never train.
TEST(FrozenWeights, AreAllWhereOnlyConstantsAreNamed) {
  const std::string refused =
      error_of({"trainable_modules=e_score_correction_bias"}, "full", "glm-4.5-air");
  EXPECT_TRUE(contains(refused, "'trainable_modules' names only tensors that no training changes"))
      << refused;
}

// The loss that balances experts is of routers whose scores are a softmax.
TEST(RouterLoss, IsRefusedForRoutersThatNoLossBalances) {
  for (const char* key : {"output_router_logits=true", "router_aux_loss_coef=0.01"})
    EXPECT_TRUE(contains(error_of({key}, "full", "glm-4.5-air"), "routers of a softmax")) << key;
  EXPECT_TRUE(contains(error_of({"router_aux_loss_coef=0.01"}, "full", "gemma-4-26b-a4b"),
                       "does not have for this model"));
  EXPECT_TRUE(contains(error_of({"output_router_logits=true"}, "full", "smollm2-135m"), "none"));
  EXPECT_EQ(error_of({"output_router_logits=true"}, "full", "qwen1.5-moe-a2.7b"), "(no error)");
}

TEST(FrozenWeights, AreTheOthersOfTrainableModules) {
  const Job job = plan_of({"trainable_modules=lm_head,layers.21.mlp"});
  std::set<std::string> trained;
  for (const program::Tensor& tensor : job.trainables) trained.insert(tensor.name);
  EXPECT_EQ(trained,
            (std::set<std::string>{"lm_head.weight", "model.layers.21.mlp.down_proj.weight",
                                   "model.layers.21.mlp.gate_proj.weight",
                                   "model.layers.21.mlp.up_proj.weight"}));
}

TEST(FrozenWeights, AreThoseOfFreezeModules) {
  EXPECT_EQ(spec_of({"freeze_modules=embed_tokens,model.norm"}).frozen,
            (Words{"model.embed_tokens.weight", "model.norm.weight"}));
  EXPECT_TRUE(spec_of({}).frozen.empty());
}

// freeze_modules is taken from trainable_modules.
TEST(FrozenWeights, OfBothKeysFreezingWins) {
  const Job job =
      plan_of({"trainable_modules=layers.2[01]", "freeze_modules=*norm*,layers.20.mlp"});
  EXPECT_EQ(job.trainables.size(), 4U + 7U);
  for (const program::Tensor& tensor : job.trainables)
    EXPECT_EQ(tensor.name.find("norm"), std::string::npos) << tensor.name;
}

TEST(FrozenWeights, APatternThatSelectsNothingIsAnError) {
  for (const char* key : {"trainable_modules", "freeze_modules"}) {
    const std::string text = error_of({fmt::format("{}=lm_head,q_prj", key)});
    EXPECT_TRUE(contains(text, fmt::format("command line: '{}' names \"q_prj\"", key)));
    EXPECT_TRUE(contains(text, "did you mean \"q_proj\"?"));
    EXPECT_TRUE(contains(text, "model.layers.0 to model.layers.21"));
  }
  EXPECT_TRUE(contains(error_of({"freeze_modules=layers.2[2-9]"}), "layers.2[2-9]"));
}

TEST(FrozenWeights, SomethingMustBeLeftToTrain) {
  EXPECT_TRUE(contains(error_of({"freeze_modules=model,lm_head"}), "freezes every weight"));
  EXPECT_TRUE(contains(error_of({"trainable_modules=lm_head", "freeze_modules=lm_head"}),
                       "freezes all that trainable_modules names"));
}

TEST(FrozenWeights, AnAdapterHasNone) {
  for (const char* method : {"lora", "qlora"})
    for (const char* key : {"trainable_modules", "freeze_modules"}) {
      const std::string text = error_of({fmt::format("{}=lm_head", key)}, method);
      EXPECT_TRUE(contains(text, fmt::format("command line: '{}'", key)));
      EXPECT_TRUE(contains(text, fmt::format("with method={} none does", method)));
    }
}

// The command line's method wins over the file, whose keys of the other method are idle then.
TEST(FrozenWeights, AFilesKeysMayStayWhereTheCommandLineChoseLora) {
  const formats::Recipe recipe =
      formats::parse_recipe("model: tinyllama-1.1b\nmethod: full\nfreeze_modules: lm_head\n",
                            "recipe.yaml", {"method=lora"});
  const auto config = models::find_model(recipe.model).config;
  EXPECT_TRUE(training_spec(recipe, config, NullTarget()).frozen.empty());
}

struct Kept {
  const char* optim;
  int64_t gradient, moments, master;  // bytes of a weight that trains
};

TEST(FrozenWeights, TakeNoGradientAndNoState) {
  for (const Kept& kept : {Kept{"adamw", 4, 8, 4}, Kept{"adamw_bf16", 2, 4, 0}}) {
    SCOPED_TRACE(kept.optim);
    const Words words{fmt::format("optim={}", kept.optim), "recompute=layer"};
    const Job all = plan_of(words);
    const Job some = plan_of({words[0], words[1], "trainable_modules=layers.2[01],model.norm"});
    int64_t trained = 0;
    for (const models::Weight& weight : models::weights_of(*models::preset("tinyllama-1.1b")))
      if (weight.layer >= 20 || weight.name == "model.norm.weight")
        trained += weight.shape.elements();
    EXPECT_EQ(some.trainable_parameters, trained);
    EXPECT_EQ(some.parameters, all.parameters);
    EXPECT_EQ(role_bytes(some, Role::gradient), kept.gradient * trained);
    EXPECT_EQ(role_bytes(some, Role::moment), kept.moments * trained);
    EXPECT_EQ(role_bytes(some, Role::master), kept.master * trained);
    EXPECT_EQ(role_bytes(some, Role::weight), 2 * some.parameters);
    EXPECT_EQ(role_bytes(all, Role::moment), kept.moments * all.parameters);
  }
}

// Of layers below `lowest` nothing runs after the forward pass, and nothing that they made is read
// then but the residual stream that leaves them.
void expect_nothing_below(const Job& job, int32_t lowest) {
  const program::Program& micro = *job.find(ProgramName::micro_first);
  for (const program::Operation& operation : micro.operations) {
    if (operation.phase == Phase::forward) continue;
    EXPECT_TRUE(operation.layer < 0 || operation.layer >= lowest)
        << name_of(operation.kind()) << " of layer " << operation.layer;
    for (const program::TensorId id : operation.reads) {
      const program::Tensor& tensor = micro.tensor(id);
      if (tensor.lifetime != program::Lifetime::program || tensor.layer < 0) continue;
      EXPECT_GE(tensor.layer, lowest) << tensor.name << ", read by " << name_of(operation.kind());
    }
  }
}

// The last layer's down projection needs neither a gradient of its input nor the layer's input
// itself, but what it reads is made again, from there and not from the tokens.
TEST(FrozenWeights, NothingBelowWhatTrainsIsGoneThroughBackwards) {
  for (const char* mode : {"none", "gate_up", "attention", "all_but_attention", "layer"})
    for (const char* trained : {"layers.2[01]", "layers.20.mlp.down_proj",
                                "layers.20.self_attn.q_proj", "layers.20.mlp"}) {
      SCOPED_TRACE(fmt::format("{} {}", mode, trained));
      const Job job = plan_of(
          {fmt::format("recompute={}", mode), fmt::format("trainable_modules={}", trained)});
      expect_nothing_below(job, 20);
    }
}

TEST(FrozenWeights, TheHeadAloneNeedsNoBackwardPass) {
  const Job job = plan_of({"trainable_modules=lm_head"});
  expect_nothing_below(job, 22);
  EXPECT_EQ(role_bytes(job, Role::gradient), 4 * 32000 * 2048);
  EXPECT_EQ(job.trainables.size(), 1U);
}

// What layers keep for the backward pass falls with the number of layers that have one.
TEST(FrozenWeights, SaveTheActivationsOfLayersBelow) {
  const auto activations = [](const Words& words) {
    return role_bytes(plan_of(words), Role::activation);
  };
  const int64_t all = activations({});
  const int64_t half = activations({"trainable_modules=layers.1[1-9],layers.2[01]"});
  EXPECT_NEAR(static_cast<double>(half) / static_cast<double>(all), 0.5, 0.06);
}

TEST(FrozenWeights, SizesByLayersAreThoseOfTheJob) {
  const formats::Recipe recipe = formats::load_recipe("", {"model=tinyllama-1.1b"});
  const NullTarget target;
  const TrainingSpec spec = spec_of({"trainable_modules=layers.2[01]", "recompute=layer"});
  const Rates rates = rates_for(recipe, target);
  const JobSize whole = size_of(plan_training(spec, target), spec, rates);
  const JobSize grown = size_by_layers(spec, target, rates);
  EXPECT_EQ(grown.lower_bound_bytes, whole.lower_bound_bytes);
  EXPECT_EQ(grown.step_seconds, whole.step_seconds);
  EXPECT_LT(whole.step_seconds,
            0.6 * size_of(plan_of({"recompute=layer"}), spec, rates).step_seconds);
}

}  // namespace
}  // namespace snug::plan
