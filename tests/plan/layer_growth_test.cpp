// Sizes from few layers against those of the whole job.
#include "plan/job/layer_growth.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "formats/recipe/recipe.h"
#include "null_target.h"
#include "plan/spec/spec.h"
#include "plan/time/calibration_file.h"

namespace snug::plan {
namespace {

struct Case {
  std::string name;
  std::string yaml;
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const char* method : {"lora", "full"})
    for (const char* recompute : {"all_but_attention", "layer"})
      result.push_back({fmt::format("{} {} offloaded", method, recompute),
                        fmt::format("model: llama-3.2-1b\nmethod: {}\nrecompute: {}\n"
                                    "activation_offloading: true\nmax_length: 1024\n"
                                    "compute_dtype: bf16\n",
                                    method, recompute)});
  for (const char* model : {"smollm2-135m", "llama-3.2-1b"})
    for (const char* method : {"lora", "full"})
      for (const char* recompute : {"none", "gate_up", "attention", "all_but_attention", "layer"})
        for (const char* optim : {"adamw", "adamw_bf16"})
          for (const int rows : {1, 6})
            result.push_back(
                {fmt::format("{} {} {} {} {}", model, method, recompute, optim, rows),
                 fmt::format("model: {}\nmethod: {}\nrecompute: {}\noptim: {}\n"
                             "per_device_train_batch_size: {}\ngradient_accumulation_steps: 2\n"
                             "max_length: {}\ncompute_dtype: bf16\n",
                             model, method, recompute, optim, rows, rows == 1 ? 64 : 1024)});
  for (const char* part :
       {"layers_to_transform: 20", "rank_pattern: {layers.5.self_attn.q_proj: 64}"})
    result.push_back({part, fmt::format("model: qwen3-0.6b\nmethod: lora\nrecompute: none\n"
                                        "max_length: 64\ncompute_dtype: bf16\n{}\n",
                                        part)});
  result.push_back({"experts of some layers",
                    "model: qwen3-30b-a3b\nmethod: lora\nrecompute: none\nmax_length: 64\n"
                    "target_modules: q_proj\n"
                    "target_parameters: layers.20.mlp.experts.down_proj\ncompute_dtype: bf16\n"});
  return result;
}

TEST(LayerGrowth, IsThatOfTheWholeJob) {
  const NullTarget target;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    const formats::Recipe recipe = formats::parse_recipe(one.yaml, "recipe.yaml");
    const auto config = *models::preset(recipe.model);
    const TrainingSpec spec = training_spec(recipe, config, target);
    const Rates rates = rates_for(recipe, target);
    const JobSize whole = size_of(plan_training(spec, target), spec, rates);
    const JobSize grown = size_by_layers(spec, target, rates);
    EXPECT_EQ(grown.lower_bound_bytes, whole.lower_bound_bytes);
    EXPECT_NEAR(grown.step_seconds, whole.step_seconds, 1e-3 * whole.step_seconds);
  }
}

TEST(LayerGrowth, OfFewLayersIsTheJobItself) {
  const NullTarget target;
  const formats::Recipe recipe = formats::parse_recipe(cases()[0].yaml, "recipe.yaml");
  auto config = *models::preset(recipe.model);
  for (config.num_layers = 1; config.num_layers <= 5; ++config.num_layers) {
    const TrainingSpec spec = training_spec(recipe, config, target);
    const Rates rates = rates_for(recipe, target);
    const JobSize whole = size_of(plan_training(spec, target), spec, rates);
    const JobSize grown = size_by_layers(spec, target, rates);
    EXPECT_EQ(grown.lower_bound_bytes, whole.lower_bound_bytes) << config.num_layers;
    EXPECT_NEAR(grown.step_seconds, whole.step_seconds, 1e-3 * whole.step_seconds);
  }
}

}  // namespace
}  // namespace snug::plan
