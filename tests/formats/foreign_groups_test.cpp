// Keys of other tools that say one thing together, and words that say two things at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"

namespace snug::formats {
namespace {

using testing::contains;
using testing::user_error_of;

Recipe taken(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_recipe(yaml, "r.yaml", overrides);
}

std::string mistakes_in(const std::string& yaml) {
  return user_error_of([&] { taken(yaml); });
}

bool tells(const Recipe& recipe, std::string_view text) {
  return std::any_of(recipe.notes.begin(), recipe.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

// As a map, in JSON or YAML, as text of either, over several lines, and by its path.
TEST(ForeignGroups, KeysOfASchedulerMayBeWrittenInEveryWay) {
  const std::string schedule = "lr_scheduler_type: cosine_with_min_lr\n";
  for (const char* said :
       {"lr_scheduler_kwargs: {min_lr: 1.0e-5, num_cycles: 0.25}",
        "lr_scheduler_kwargs:\n  min_lr: 1e-5\n  num_cycles: 0.25",
        "lr_scheduler_kwargs: {\"min_lr\": 1e-5, \"num_cycles\": 0.25}",
        "lr_scheduler_kwargs: '{\"min_lr\": 1e-5, \"num_cycles\": 0.25}'",
        "lr_scheduler_kwargs: \"{'min_lr': 1e-05, 'num_cycles': 0.25}\"",
        "lr_scheduler_kwargs: ' { \"min_lr\":1E-5,\"num_cycles\":2.5e-1 } '",
        "lr_scheduler_kwargs: |\n  {\n    \"min_lr\": 1e-5,\n    \"num_cycles\": 0.25\n  }\n",
        "lr_scheduler_kwargs: \"{\\n\\t\\\"min_lr\\\": 1e-5,\\n\\t\\\"num_cycles\\\": 0.25\\n}\"",
        "lr_scheduler_kwargs: {min_lr: 1e-5, num_cycles: 0.25, last_epoch: -1}",
        "lr_scheduler_kwargs:\n  - {min_lr: 1e-5}\n  - {num_cycles: 0.25}"}) {
    const Recipe recipe = taken(schedule + said);
    EXPECT_EQ(recipe.min_lr, 1e-5) << said;
    EXPECT_EQ(recipe.num_cycles, 0.25) << said;
  }
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"lr_scheduler_kwargs={\"min_lr\": 1e-5, \"num_cycles\": 0.25}"},
        {"lr_scheduler_kwargs.min_lr=1e-5", "lr_scheduler_kwargs.num_cycles=0.25"}}) {
    const Recipe recipe = taken(schedule, line);
    EXPECT_EQ(recipe.min_lr, 1e-5) << line.front();
    EXPECT_EQ(recipe.num_cycles, 0.25) << line.front();
  }
  EXPECT_TRUE(
      contains(mistakes_in("lr_scheduler_kwargs: '{\"min_lrr\": 1}'"), "snug reads min_lr"));
}

TEST(ForeignGroups, BuildersOfTorchtuneSayTheMethod) {
  const auto built = [](const std::string& builder, const std::string& more = "") {
    return taken("model:\n  _component_: torchtune.models." + builder + "\n" + more +
                 "checkpointer: {checkpoint_dir: m}\n");
  };
  EXPECT_EQ(built("llama3_2.llama3_2_3b").method, Method::full);
  EXPECT_EQ(built("llama3_1.qlora_llama3_1_8b").method, Method::qlora);
  const Recipe lora = built("qwen2_5.lora_qwen2_5_7b",
                            "  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']\n"
                            "  apply_lora_to_mlp: True\n  apply_lora_to_output: False\n");
  EXPECT_EQ(lora.method, Method::lora);
  EXPECT_EQ(lora.target_modules, (std::vector<std::string>{"q_proj", "v_proj", "o_proj",
                                                           "gate_proj", "up_proj", "down_proj"}));
  EXPECT_EQ(built("gemma.lora_gemma_2b", "  lora_attn_modules: [k_proj]\n").target_modules,
            std::vector<std::string>{"k_proj"});
  EXPECT_EQ(
      taken("clip_grad_norm: null\noptimizer: {_component_: torch.optim.AdamW}").max_grad_norm, 0);
  EXPECT_EQ(taken("clip_grad_norm: null\nmethod: full").max_grad_norm, 1);
  const Recipe pairs = taken("loss:\n  _component_: torchtune.rlhf.loss.DPOLoss\n  beta: 0.3\n");
  EXPECT_EQ(pairs.objective, Objective::dpo);
  EXPECT_EQ(pairs.beta, 0.3);
  EXPECT_TRUE(contains(mistakes_in("model: {_component_: mine.models.lora_m}"),
                       "it names a builder of torchtune"));
  EXPECT_TRUE(contains(mistakes_in("model: {_component_: torchtune.models.phi3.lora_phi3_mini, "
                                   "apply_lora_to_output: true}"),
                       "'model.apply_lora_to_output' is 'true'"));
}

TEST(ForeignGroups, ActivationsMayBeOffloadedInOneWord) {
  for (const char* word : {"offload", "unsloth"}) {
    const Recipe recipe = taken(fmt::format("gradient_checkpointing: {}", word));
    EXPECT_TRUE(recipe.activation_offloading) << word;
    EXPECT_EQ(recipe.recompute, Recompute::automatic) << word;
  }
  EXPECT_TRUE(contains(mistakes_in("gradient_checkpointing: offload_disk"),
                       "say recompute: layer and activation_offloading: true"));
}

TEST(ForeignGroups, AllLinearLayersIncludeThoseThatAreNamed) {
  const Recipe recipe = taken("lora_target_linear: true\nlora_target_modules: [q_proj, v_proj]");
  EXPECT_EQ(recipe.target_modules, std::vector<std::string>{"all-linear"});
  EXPECT_TRUE(tells(recipe, ":2:1: 'lora_target_modules' is not used"));
  EXPECT_EQ(taken("lora_target_linear: false\nlora_target_modules: [q_proj]").target_modules,
            std::vector<std::string>{"q_proj"});
}

}  // namespace
}  // namespace snug::formats
