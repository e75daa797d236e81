// The keys of training on several devices, and what other tools call them.
#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"
#include "formats/recipe/recipe_keys.h"

#include <gtest/gtest.h>

namespace snug::formats {
namespace {

using testing::contains;
using testing::user_error_of;

Recipe parse(std::string_view yaml, const std::vector<std::string>& overrides = {}) {
  return parse_recipe(yaml, "r.yaml", overrides);
}

std::string error_of(std::string_view yaml) {
  return user_error_of([&] { parse(yaml); });
}

TEST(DeviceKeys, HaveTheirDefaults) {
  const Recipe recipe = parse("");
  EXPECT_EQ(recipe.strategy, Strategy::ddp);
  EXPECT_EQ(recipe.devices, 0);
  EXPECT_EQ(recipe.nodes, 0);
  EXPECT_EQ(recipe.shard_devices, 0);
  EXPECT_EQ(recipe.prefetch, Prefetch::pre);
  EXPECT_EQ(recipe.reduce_dtype, ReduceDtype::automatic);
  EXPECT_EQ(recipe.shard_threshold, 100'000);
  EXPECT_EQ(recipe.timeout_seconds, 600);
}

struct StrategyWord {
  const char* yaml;
  Strategy strategy;
};

constexpr StrategyWord kStrategyWords[] = {
    {"strategy: ddp", Strategy::ddp},
    {"strategy: zero1", Strategy::zero1},
    {"strategy: zero2", Strategy::zero2},
    {"strategy: shard_grad_op", Strategy::shard_grad_op},
    {"strategy: full_shard", Strategy::full_shard},
    {"strategy: hybrid_shard_grad_op", Strategy::hybrid_shard_grad_op},
    {"strategy: hybrid_full_shard", Strategy::hybrid_full_shard},
    {"strategy: HYBRID_SHARD", Strategy::hybrid_full_shard},
    {"strategy: NO_SHARD", Strategy::ddp},
    {"strategy: zero0", Strategy::ddp},
    {"strategy: ZeRO3", Strategy::full_shard},
    {"strategy: fsdp", Strategy::full_shard},
    {"sharding_strategy: FULL_SHARD", Strategy::full_shard},
    {"sharding_strategy: SHARD_GRAD_OP", Strategy::shard_grad_op},
    {"sharding_strategy: NO_SHARD", Strategy::ddp},
    {"sharding_strategy: _HYBRID_SHARD_ZERO2", Strategy::hybrid_shard_grad_op},
    {"sharding_strategy: 1", Strategy::full_shard},
    {"fsdp_sharding_strategy: Hybrid_Shard_Zero2", Strategy::hybrid_shard_grad_op},
    {"fsdp_sharding_strategy: 1", Strategy::full_shard},
    {"fsdp_sharding_strategy: 2", Strategy::shard_grad_op},
    {"fsdp_sharding_strategy: 3", Strategy::ddp},
    {"fsdp_sharding_strategy: 4", Strategy::hybrid_full_shard},
    {"fsdp_sharding_strategy: 5", Strategy::hybrid_shard_grad_op},
    {"zero_stage: 0", Strategy::ddp},
    {"zero_stage: 1", Strategy::zero1},
    {"zero_stage: 2", Strategy::zero2},
    {"zero_stage: 3", Strategy::full_shard},
    {"fsdp: full_shard auto_wrap", Strategy::full_shard},
    {"fsdp: auto_wrap shard_grad_op", Strategy::shard_grad_op},
    {"fsdp: [hybrid_shard, auto_wrap]", Strategy::hybrid_full_shard},
    {"fsdp: hybrid_shard_zero2", Strategy::hybrid_shard_grad_op},
    {"fsdp: no_shard", Strategy::ddp},
    {"fsdp: true", Strategy::full_shard},
    {"fsdp: false", Strategy::ddp},
    {"fsdp: ''", Strategy::ddp},
};

TEST(DeviceKeys, StrategyHasTheWordsOfOtherTools) {
  for (const StrategyWord& word : kStrategyWords) {
    const Recipe recipe = parse(word.yaml);
    EXPECT_EQ(recipe.strategy, word.strategy) << word.yaml;
    EXPECT_FALSE(recipe.offload_params) << word.yaml;
    EXPECT_EQ(parse(to_yaml(recipe)).strategy, word.strategy) << word.yaml;
  }
}

TEST(DeviceKeys, FsdpMayAskForOffloading) {
  const Recipe recipe = parse("fsdp: FULL_SHARD OFFLOAD auto_wrap");
  EXPECT_EQ(recipe.strategy, Strategy::full_shard);
  EXPECT_TRUE(recipe.offload_params);
  EXPECT_TRUE(parse("", {"fsdp=full_shard offload"}).offload_params);
  EXPECT_EQ(parse("fsdp: full_shard", {"fsdp="}).strategy, Strategy::ddp);
}

// Of weights that train FSDP keeps all that lasts on the host; offload_params alone names weights.
TEST(DeviceKeys, OffloadOfFsdpIsOfAllThatLasts) {
  const auto optimizer_of = [](const std::string& yaml) { return parse(yaml).offload_optimizer; };
  for (const char* words : {"fsdp: full_shard offload", "fsdp_offload_params: true"}) {
    const std::string yaml = std::string(words) + "\nmethod: full\n";
    const Recipe recipe = parse(yaml);
    EXPECT_TRUE(recipe.offload_params) << words;
    EXPECT_EQ(recipe.offload_optimizer, OffloadOptimizer::automatic) << words;
    EXPECT_EQ(parse(given_to_yaml(recipe)).offload_optimizer, OffloadOptimizer::automatic)
        << given_to_yaml(recipe);
    EXPECT_EQ(optimizer_of(yaml + "offload_optimizer: none\n"), OffloadOptimizer::none);
    EXPECT_EQ(optimizer_of(std::string(words) + "\nmethod: lora\n"), OffloadOptimizer::none);
  }
  for (const char* words :
       {"fsdp_offload_params: false", "fsdp: full_shard", "offload_params: true"})
    EXPECT_EQ(optimizer_of(std::string(words) + "\nmethod: full\n"), OffloadOptimizer::none)
        << words;
}

TEST(DeviceKeys, OffloadOfFsdpIsOneKey) {
  EXPECT_TRUE(contains(error_of("fsdp: offload auto_wrap"),
                       "r.yaml:1:1: 'fsdp' is 'offload auto_wrap', which does not say strategy"));
  EXPECT_TRUE(contains(error_of("offload_params: false\nfsdp: full_shard offload"),
                       "r.yaml:2:1: 'offload_params' and 'fsdp_offload_params' are names of the "
                       "same key (first on line 1)"));
}

TEST(DeviceKeys, OthersHaveTheirAliasesToo) {
  for (const char* name : {"prefetch", "backward_prefetch", "fsdp_backward_prefetch"}) {
    EXPECT_EQ(parse(fmt::format("{}: BACKWARD_PRE", name)).prefetch, Prefetch::pre) << name;
    EXPECT_EQ(parse(fmt::format("{}: backward_post", name)).prefetch, Prefetch::post) << name;
    EXPECT_EQ(parse(fmt::format("{}: NO_PREFETCH", name)).prefetch, Prefetch::none) << name;
    EXPECT_EQ(parse(fmt::format("{}: none", name)).prefetch, Prefetch::none) << name;
  }
  EXPECT_EQ(parse("reduce_dtype: float32").reduce_dtype, ReduceDtype::fp32);
  EXPECT_EQ(parse("reduce_dtype: bf16").reduce_dtype, ReduceDtype::bf16);
  EXPECT_EQ(parse("stage3_param_persistence_threshold: 1e6").shard_threshold, 1'000'000);
  EXPECT_EQ(parse("ddp_timeout: 180000000").timeout_seconds, 180'000'000);
}

TEST(DeviceKeys, PrintAndReadBack) {
  const Recipe recipe = parse(
      "{strategy: hybrid_full_shard, devices: 8, nodes: 2, shard_devices: 4, prefetch: post, "
      "reduce_dtype: fp32, shard_threshold: 0, timeout_seconds: 60}");
  for (const Verb verb : {Verb::train, Verb::plan}) {
    const Recipe again = parse(to_yaml(recipe, verb));
    EXPECT_EQ(to_yaml(again, verb), to_yaml(recipe, verb));
    EXPECT_EQ(again.strategy, Strategy::hybrid_full_shard);
    EXPECT_EQ(again.devices, 8);
    EXPECT_EQ(again.nodes, 2);
    EXPECT_EQ(again.shard_devices, 4);
    EXPECT_EQ(again.prefetch, Prefetch::post);
    EXPECT_EQ(again.reduce_dtype, ReduceDtype::fp32);
    EXPECT_EQ(again.shard_threshold, 0);
    EXPECT_EQ(again.timeout_seconds, 60);
  }
}

TEST(DeviceKeys, WrongValuesAreNamed) {
  EXPECT_TRUE(contains(error_of("strategy: full_shart"), "Did you mean full_shard?"));
  EXPECT_TRUE(contains(error_of("strategy: 1"), "'strategy' is '1'; expected one of ddp, zero1"));
  EXPECT_TRUE(contains(error_of("zero_stage: 4"),
                       "r.yaml:1:1: 'zero_stage' is '4'; expected one of 0, 1, 2, 3"));
  const std::string torch_words =
      "expected one of full_shard, shard_grad_op, no_shard, hybrid_shard, hybrid_shard_zero2, ";
  EXPECT_TRUE(contains(error_of("fsdp_sharding_strategy: 6"), torch_words + "1, 2, 3, 4, 5"));
  EXPECT_TRUE(contains(error_of("fsdp: bogus"), torch_words + "true, false"));
  EXPECT_TRUE(contains(error_of("fsdp: auto_wrap"), "add one of full_shard, shard_grad_op, no"));
  EXPECT_TRUE(contains(error_of("fsdp: ful_shard"), "Did you mean full_shard?"));
  EXPECT_TRUE(contains(error_of("fsdp: full_shard shard_grad_op"),
                       "'fsdp' is the list [full_shard, shard_grad_op]"));
  EXPECT_TRUE(contains(error_of("strategy: full_shard offload"), "'full_shard offload'"));
  EXPECT_TRUE(contains(error_of("devices: -1"), "expected a whole number of 0 or more"));
  EXPECT_TRUE(contains(error_of("devices: 5000"), "at most 4096"));
  EXPECT_TRUE(contains(error_of("nodes: 1.5"), "expected a whole number"));
  EXPECT_TRUE(contains(error_of("shard_devices: -2"), "expected a whole number of 0 or more"));
  EXPECT_TRUE(contains(error_of("prefetch: BACKWARD"), "expected one of pre, post, none"));
  EXPECT_TRUE(contains(error_of("backward_prefetch: BACKWARD"),
                       "expected one of backward_pre, backward_post, no_prefetch"));
  EXPECT_TRUE(contains(error_of("reduce_dtype: fp16"), "expected one of auto, fp32, bf16"));
  EXPECT_TRUE(contains(error_of("shard_threshold: -1"), "expected a whole number of 0 or more"));
  EXPECT_TRUE(contains(error_of("timeout_seconds: 0"), "expected a whole number of 1 or more"));
  EXPECT_TRUE(contains(error_of("strategy: ddp\nzero_stage: 2"),
                       "'strategy' and 'zero_stage' are names of the same key (first on line 1)"));
}

}  // namespace
}  // namespace snug::formats
