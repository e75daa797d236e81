// Files of DeepSpeed and accelerate as part of a recipe.
#include "../base/temporary_folder.h"
#include "formats/recipe/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace snug::formats {
namespace {

using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

class ToolConfigTest : public ::testing::Test {
 protected:
  Recipe deepspeed(std::string_view json, const std::string& yaml = "",
                   std::vector<std::string> overrides = {}) {
    overrides.push_back("deepspeed=" + folder_.write("ds.json", json).string());
    return parse_recipe(yaml, "r.yaml", overrides);
  }
  Recipe accelerate(std::string_view text, const std::string& yaml = "",
                    std::vector<std::string> overrides = {}) {
    overrides.push_back("accelerate_config=" + folder_.write("a.yaml", text).string());
    return parse_recipe(yaml, "r.yaml", overrides);
  }
  std::string deepspeed_error(std::string_view json, const std::string& yaml = "") {
    return user_error_of([&] { deepspeed(json, yaml); });
  }
  std::string accelerate_error(std::string_view text, const std::string& yaml = "") {
    return user_error_of([&] { accelerate(text, yaml); });
  }

  TemporaryFolder folder_;
};

bool has_note(const Recipe& recipe, std::string_view text) {
  return std::any_of(recipe.notes.begin(), recipe.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

constexpr std::string_view kZero3 = R"({
  "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": 5e8,
    "stage3_param_persistence_threshold": 1e6, "zero_hpz_partition_size": 1,
    "offload_optimizer": {"device": "cpu", "pin_memory": true}, "offload_param": {"device": "cpu"}},
  "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "train_batch_size": 64,
  "gradient_clipping": 0.5, "bf16": {"enabled": true}, "fp16": {"enabled": false, "loss_scale": 0},
  "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.8, 0.95], "eps": 1e-7,
    "weight_decay": 0.1}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 3e-4,
    "warmup_num_steps": 10, "total_num_steps": 100, "warmup_type": "linear"}},
  "communication_data_type": "fp32", "data_types": {"grad_accum_dtype": "fp32"},
  "steps_per_print": 10})";

TEST_F(ToolConfigTest, DeepSpeedSetsTheKeysOfTheRecipe) {
  const Recipe recipe = deepspeed(kZero3);
  EXPECT_EQ(recipe.strategy, Strategy::full_shard);
  EXPECT_EQ(recipe.shard_threshold, 1'000'000);
  EXPECT_EQ(recipe.offload_optimizer, OffloadOptimizer::automatic);
  EXPECT_TRUE(recipe.offload_params);
  EXPECT_EQ(recipe.per_device_train_batch_size, 2);
  EXPECT_EQ(recipe.gradient_accumulation_steps, 4);
  EXPECT_EQ(recipe.train_batch_size, 64);
  EXPECT_EQ(recipe.max_grad_norm, 0.5);
  EXPECT_EQ(recipe.compute_dtype, ComputeDtype::bf16);
  EXPECT_EQ(recipe.optim, Optimizer::adamw);
  EXPECT_EQ(recipe.learning_rate, 3e-4);
  EXPECT_EQ(recipe.adam_beta1, 0.8);
  EXPECT_EQ(recipe.adam_beta2, 0.95);
  EXPECT_EQ(recipe.adam_epsilon, 1e-7);
  EXPECT_EQ(recipe.weight_decay, 0.1);
  EXPECT_EQ(recipe.lr_scheduler_type, Schedule::linear);
  EXPECT_EQ(recipe.warmup_steps, 10);
  EXPECT_EQ(recipe.max_steps, 100);
  EXPECT_EQ(recipe.reduce_dtype, ReduceDtype::fp32);
  EXPECT_EQ(recipe.gradient_dtype, GradientDtype::fp32);
  EXPECT_TRUE(has_note(recipe,
                       "zero_optimization.overlap_comm, zero_optimization.reduce_bucket_size: not "
                       "used: Snug plans its own buffers"));
  EXPECT_TRUE(has_note(recipe, "steps_per_print: not used: metrics.jsonl"));
}

TEST_F(ToolConfigTest, LossScalesHaveTheDefaultsOfTheirTool) {
  const Recipe torch = accelerate("mixed_precision: fp16");
  EXPECT_EQ(torch.compute_dtype, ComputeDtype::fp16);
  EXPECT_EQ(torch.loss_scale, 0);
  EXPECT_EQ(torch.initial_scale_power, 16);
  EXPECT_EQ(torch.loss_scale_window, 2000);
  EXPECT_EQ(torch.hysteresis, 1);
  EXPECT_EQ(torch.min_loss_scale, 0);
  const Recipe own = deepspeed(R"({"fp16": {"enabled": true, "initial_scale_power": 12}})");
  EXPECT_TRUE(own.fp16);
  EXPECT_EQ(own.initial_scale_power, 12);
  EXPECT_EQ(own.loss_scale_window, 1000);
  EXPECT_EQ(own.hysteresis, 2);
  EXPECT_EQ(own.min_loss_scale, 1);
  const Recipe given = deepspeed(
      R"({"fp16": {"enabled": "auto", "loss_scale": 128, "loss_scale_window": 50,
          "min_loss_scale": 0.5, "consecutive_hysteresis": false}})",
      "fp16: true\nhysteresis: 3");
  EXPECT_TRUE(given.fp16);
  EXPECT_EQ(given.loss_scale, 128);
  EXPECT_EQ(given.loss_scale_window, 50);
  EXPECT_EQ(given.hysteresis, 3);
  EXPECT_EQ(given.min_loss_scale, 0.5);
  EXPECT_EQ(deepspeed(R"({"fp16": {"enabled": false}})").loss_scale_window, 2000);
}

TEST_F(ToolConfigTest, WhatIsPrintedNeedsNoFile) {
  const Recipe recipe = deepspeed(kZero3, "", {"learning_rate=1e-5"});
  const std::string text = to_yaml(recipe);
  EXPECT_EQ(text.find("ds.json"), std::string::npos);
  EXPECT_EQ(to_yaml(parse_recipe(text, "again.yaml")), text);
}

TEST_F(ToolConfigTest, AutoLeavesTheRecipeAlone) {
  const Recipe recipe = deepspeed(
      R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}, "train_batch_size": "auto",
          "train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto",
          "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
          "zero_optimization": {"stage": 2, "stage3_param_persistence_threshold": "auto"}})",
      "per_device_train_batch_size: 3");
  EXPECT_EQ(recipe.strategy, Strategy::zero2);
  EXPECT_EQ(recipe.per_device_train_batch_size, 3);
  EXPECT_EQ(recipe.compute_dtype, ComputeDtype::automatic);
  EXPECT_EQ(recipe.learning_rate, 2e-4);
  EXPECT_EQ(recipe.adam_beta1, 0.9);
  EXPECT_EQ(recipe.shard_threshold, 100'000);
  EXPECT_TRUE(recipe.notes.empty());
}

TEST_F(ToolConfigTest, OlderNamesOfDeepSpeedAreTaken) {
  EXPECT_EQ(deepspeed(R"({"zero_optimization": {"cpu_offload": true}})").offload_optimizer,
            OffloadOptimizer::automatic);
  EXPECT_TRUE(deepspeed(R"({"zero_optimization": {"cpu_offload_param": true}})").offload_params);
  EXPECT_EQ(deepspeed(R"({"bfloat16": {"enabled": true}})").compute_dtype, ComputeDtype::bf16);
  EXPECT_EQ(
      deepspeed(R"({"zero_optimization": {"param_persistence_threshold": 7}})").shard_threshold, 7);
}

// What DeepSpeed's checkpointing keeps is then recomputed from host memory, if anything is.
TEST_F(ToolConfigTest, CheckpointsOfActivationsOnTheHostAreTaken) {
  const auto offloads = [&](const char* word) {
    const Recipe recipe =
        deepspeed(fmt::format(R"({{"activation_checkpointing": {{"cpu_checkpointing": {},
                        "partition_activations": true}}}})",
                              word),
                  "recompute: layer");
    EXPECT_TRUE(has_note(recipe, "activation_checkpointing.partition_activations: not used"));
    EXPECT_FALSE(has_note(recipe, "cpu_checkpointing"));
    return recipe.activation_offloading;
  };
  EXPECT_TRUE(offloads("true"));
  EXPECT_FALSE(offloads("false"));
  EXPECT_TRUE(
      contains(deepspeed_error(R"({"activation_checkpointing": {"cpu_checkpointing": "often"}})"),
               "ds.json:1:31: activation_checkpointing.cpu_checkpointing: 'activation_offloading' "
               "is 'often'"));
}

TEST_F(ToolConfigTest, SchedulesOfDeepSpeedHaveTheirNames) {
  const auto schedule = [&](const char* type) {
    return deepspeed(fmt::format(R"({{"scheduler": {{"type": "{}"}}}})", type));
  };
  EXPECT_EQ(schedule("WarmupLR").lr_scheduler_type, Schedule::constant_with_warmup);
  EXPECT_EQ(schedule("WarmupDecayLR").lr_scheduler_type, Schedule::linear);
  EXPECT_EQ(schedule("WarmupCosineLR").lr_scheduler_type, Schedule::cosine);
  EXPECT_TRUE(has_note(schedule("WarmupLR"), "rises by the logarithm"));
}

TEST_F(ToolConfigTest, CommandLineWinsAndTheRecipeMustAgree) {
  constexpr std::string_view json = R"({"optimizer": {"params": {"lr": 3e-4}}})";
  EXPECT_EQ(deepspeed(json, "", {"learning_rate=1e-5"}).learning_rate, 1e-5);
  EXPECT_EQ(deepspeed(json, "learning_rate: 0.0003").learning_rate, 3e-4);
  const std::string error = deepspeed_error(json, "seed: 1\nlr: 1e-3");
  EXPECT_TRUE(contains(error, "r.yaml:2:1: 'lr' is 0.001 here, but "));
  EXPECT_TRUE(contains(error, "ds.json:1:27: optimizer.params.lr means 0.0003"));
  EXPECT_TRUE(contains(deepspeed_error(R"({"scheduler": {"params": {"total_num_steps": 9}}})",
                                       "num_train_epochs: 2"),
                       "scheduler.params.total_num_steps: gives the number of steps"));
}

// Of a published file: sections that only log.
TEST_F(ToolConfigTest, SectionsThatOnlyLogArePassedOver) {
  const Recipe recipe = deepspeed(
      R"({"comms_config": {"verbose": false}, "comms_logger": {"enabled": true},
          "monitor_config": {"enabled": true, "csv_monitor": {"enabled": false}},
          "wandb": {"enabled": true}, "zero_optimization": {"stage": 3}})");
  EXPECT_EQ(recipe.strategy, Strategy::full_shard);
  EXPECT_TRUE(has_note(recipe, "monitor_config.csv_monitor.enabled"));
  EXPECT_TRUE(has_note(recipe, "comms_config.verbose"));
}

TEST_F(ToolConfigTest, AllThatIsWrongIsTold) {
  const std::string error = deepspeed_error(
      R"({"zero_optimization": {"stage": 4, "stagee": 1}, "optimizer": {"type": "Lamb"},
          "amp": {"enabled": true}, "gradient_clipping": "much", "train_batch_size": 64})",
      "lora_r: 0\nlerning_rate: 1");
  for (const char* each :
       {"'zero_stage' is '4'", "zero_optimization.stagee: is unknown", "optimizer.type: is 'Lamb'",
        "amp.enabled: is 'true'", "'max_grad_norm' is 'much'", "train_batch_size: is 64",
        "r.yaml:1:1: 'lora_r' is '0'", "r.yaml:2:1: unknown key 'lerning_rate'"})
    EXPECT_TRUE(contains(error, each)) << error;
  const std::string other =
      accelerate_error("distributed_type: FSDP\nmixed_precision: fp8\nnum_processes: many\n");
  for (const char* each : {"does not say how it shares memory", "fp8 compute is not built",
                           "num_processes: is 'many'"})
    EXPECT_TRUE(contains(other, each)) << other;
}

struct BadFile {
  const char* text;
  const char* message;
};

constexpr BadFile kBadDeepSpeed[] = {
    {"[]", "ds.json"},
    {R"({"zero_optimisation": {"stage": 1}})",
     "ds.json:1:24: zero_optimisation.stage: is unknown; did you mean 'zero_optimization.stage'?"},
    {R"({"zero_optimization": {"stage": 4}})",
     "ds.json:1:24: zero_optimization.stage: 'zero_stage' is '4'"},
    {R"({"zero_optimization": {"offload_optimizer": {"device": "nvme"}}})",
     "zero_optimization.offload_optimizer.device: 'offload_optimizer_device: nvme': optimizer"},
    {R"({"zero_optimization": {"offload_param": {"device": "nvme"}}})", "weights on NVMe drives"},
    {R"({"zero_optimization": {"zero_hpz_partition_size": 8}})",
     "zero_hpz_partition_size: is '8', but Snug takes 1"},
    {R"({"zero_optimization": {"zero_quantized_weights": true}})", "takes false only"},
    {R"({"zero_optimization": {"mics_shard_size": 4}})", "say strategy: hybrid_full_shard"},
    {R"({"amp": {"enabled": true}})", "amp.enabled: is 'true', but Snug takes false only: apex's"},
    {R"({"communication_data_type": "fp16"})", "is 'fp16', but Snug takes none or fp32 or bf16"},
    {R"({"optimizer": {"type": "OneBitAdam"}})", "AdamW and Lion are built for DeepSpeed's files"},
    {R"({"optimizer": {"type": "Lamb"}})", "optimizer.type: is 'Lamb'"},
    {R"({"optimizer": {"type": "Muon"}})", "takes Adam or AdamW or Lion"},
    {R"({"optimizer": {"params": {"adam_w_mode": false}}})", "takes true only"},
    {R"({"scheduler": {"type": "OneCycle"}})", "scheduler.type: is 'OneCycle'"},
    {R"({"scheduler": {"params": {"warmup_type": "log"}}})", "rises linearly from 0"},
    {R"({"optimizer": {"params": {"lr": 1e-3}}, "scheduler": {"params": {"warmup_max_lr": 2e-3}}})",
     "scheduler.params.warmup_max_lr: says learning_rate=0.002, and "},
    {R"({"tensor_parallel": {"autotp_size": 2}})", "autotp_size: is '2'"},
    {R"({"pipeline": {"stages": 2}})", "pipeline.stages: is '2'"},
    {R"({"train_batch_size": 64})", "train_micro_batch_size_per_gpu is not given"},
    {R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2,
         "gradient_accumulation_steps": 1})",
     "train_batch_size: is 7, no multiple of the 2 rows"},
    {R"({"train_batch_size": 1, "train_micro_batch_size_per_gpu": 2,
         "gradient_accumulation_steps": 1})",
     "less than one device takes"},
    {R"({"train_batch_size": -4, "train_micro_batch_size_per_gpu": 2})", "of 1 or more"},
    {R"({"gradient_clipping": "much"})", "gradient_clipping: 'max_grad_norm' is 'much'"},
};

TEST_F(ToolConfigTest, WrongFilesOfDeepSpeedAreNamed) {
  for (const BadFile& bad : kBadDeepSpeed)
    EXPECT_TRUE(contains(deepspeed_error(bad.text), bad.message)) << bad.text;
  EXPECT_TRUE(contains(user_error_of([] { parse_recipe("deepspeed: no/ds.json", "r.yaml"); }),
                       "no/ds.json"));
}

// A size that cannot be read is told of once, in the words of the recipe's key.
TEST_F(ToolConfigTest, AWrongBatchSizeIsToldOfOnce) {
  const auto mistakes = [&](const std::string& text) {
    const std::string message = deepspeed_error(text);
    return std::count(message.begin(), message.end(), '\n') + 1;
  };
  for (const char* value : {"0", "-4", "2.5", "\"many\"", "true"}) {
    for (const char* key :
         {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
      std::string text = R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,)"
                         R"("gradient_accumulation_steps": 4})";
      const size_t at = text.find(key) + std::string_view(key).size() + 3;
      text.replace(at, 1, value);
      EXPECT_TRUE(contains(deepspeed_error(text), key)) << text;
      EXPECT_EQ(mistakes(text), 1) << deepspeed_error(text);
    }
  }
}

constexpr std::string_view kFsdp =
    "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\ndowncast_bf16: 'no'\n"
    "fsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    "  fsdp_backward_prefetch: BACKWARD_POST\n  fsdp_offload_params: true\n"
    "  fsdp_sharding_strategy: HYBRID_SHARD\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
    "  fsdp_activation_checkpointing: true\n"
    "machine_rank: 0\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\ntpu_env: []\n"
    "use_cpu: false\n";

TEST_F(ToolConfigTest, AccelerateSetsTheKeysOfTheRecipe) {
  const Recipe recipe = accelerate(kFsdp);
  EXPECT_EQ(recipe.strategy, Strategy::hybrid_full_shard);
  EXPECT_EQ(recipe.prefetch, Prefetch::post);
  EXPECT_TRUE(recipe.offload_params);
  EXPECT_EQ(recipe.offload_optimizer, OffloadOptimizer::none) << "an adapter trains";
  EXPECT_EQ(accelerate(kFsdp, "method: full").offload_optimizer, OffloadOptimizer::automatic);
  EXPECT_EQ(recipe.recompute, Recompute::layer);
  EXPECT_EQ(recipe.compute_dtype, ComputeDtype::bf16);
  EXPECT_EQ(recipe.nodes, 2);
  EXPECT_EQ(recipe.devices, 8);
  EXPECT_TRUE(has_note(recipe, "fsdp_config.fsdp_auto_wrap_policy: not used: Snug shares weights"));
  EXPECT_FALSE(has_note(recipe, "num_processes"));
  EXPECT_EQ(to_yaml(parse_recipe(to_yaml(recipe), "again.yaml")), to_yaml(recipe));
}

TEST_F(ToolConfigTest, AccelerateHasOtherFormsToo) {
  const auto fsdp = [&](const char* line) {
    return accelerate(fmt::format("distributed_type: FSDP\nfsdp_config:\n  {}\n", line)).strategy;
  };
  EXPECT_EQ(fsdp("fsdp_sharding_strategy: 1"), Strategy::full_shard);
  EXPECT_EQ(fsdp("fsdp_sharding_strategy: 5"), Strategy::hybrid_shard_grad_op);
  EXPECT_EQ(fsdp("fsdp_reshard_after_forward: true"), Strategy::full_shard);
  EXPECT_EQ(fsdp("fsdp_reshard_after_forward: no"), Strategy::shard_grad_op);
  // As "accelerate config" writes it for FSDP1.
  const auto fsdp1 = [&](const char* word) {
    return fsdp(fmt::format("fsdp_version: 1\n  fsdp_reshard_after_forward: {}", word).c_str());
  };
  EXPECT_EQ(fsdp1("FULL_SHARD"), Strategy::full_shard);
  EXPECT_EQ(fsdp1("SHARD_GRAD_OP"), Strategy::shard_grad_op);
  EXPECT_EQ(fsdp1("NO_SHARD"), Strategy::ddp);
  EXPECT_EQ(fsdp1("HYBRID_SHARD"), Strategy::hybrid_full_shard);
  EXPECT_EQ(fsdp1("HYBRID_SHARD_ZERO2"), Strategy::hybrid_shard_grad_op);
  EXPECT_EQ(fsdp1("4"), Strategy::hybrid_full_shard);
  EXPECT_EQ(accelerate("distributed_type: MULTI_GPU\nmixed_precision: 'no'").compute_dtype,
            ComputeDtype::fp32);
  EXPECT_EQ(accelerate("fsdp_config:\n  fsdp_backward_prefetch_policy: NO_PREFETCH").prefetch,
            Prefetch::none);
  const Recipe zero = accelerate(
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"
      "  offload_optimizer_device: cpu\n  offload_param_device: none\n  gradient_clipping: 2.0\n");
  EXPECT_EQ(zero.strategy, Strategy::zero2);
  EXPECT_EQ(zero.offload_optimizer, OffloadOptimizer::automatic);
  EXPECT_EQ(zero.max_grad_norm, 2);
  const auto path = folder_.write("inner.json", R"({"zero_optimization": {"stage": 1}})");
  EXPECT_EQ(accelerate(fmt::format("distributed_type: DEEPSPEED\ndeepspeed_config:\n"
                                   "  deepspeed_config_file: {}\n",
                                   path.string()))
                .strategy,
            Strategy::zero1);
}

// accelerate starts one process then, and reads nothing of what the file says of several.
TEST_F(ToolConfigTest, AccelerateSharesNothingWhereItIsToldNo) {
  const Recipe recipe = accelerate(
      "distributed_type: 'NO'\nnum_machines: 1\nnum_processes: 2\nmixed_precision: bf16\n"
      "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_offload_params: true\n"
      "deepspeed_config:\n  zero_stage: 3\n");
  EXPECT_EQ(recipe.strategy, Strategy::ddp);
  EXPECT_EQ(recipe.devices, 0);
  EXPECT_FALSE(recipe.offload_params);
  EXPECT_EQ(recipe.compute_dtype, ComputeDtype::bf16);
  EXPECT_TRUE(has_note(recipe, "fsdp_config.fsdp_offload_params"));
  EXPECT_TRUE(has_note(recipe, "not used: distributed_type: NO is for one process"));
  EXPECT_FALSE(has_note(recipe, "num_machines"));
  EXPECT_TRUE(contains(accelerate_error("distributed_type: 'NO'\nfsdp_config:\n"
                                        "  fsdp_sharding_strategi: FULL_SHARD\n"),
                       "did you mean"));
}

TEST_F(ToolConfigTest, AccelerateOfBeforeDynamoConfig) {
  const Recipe recipe = accelerate("distributed_type: MULTI_GPU\ndynamo_backend: 'NO'\n");
  EXPECT_EQ(recipe.strategy, Strategy::ddp);
}

constexpr BadFile kBadAccelerate[] = {
    {"- a", "a.yaml: is not a file of accelerate"},
    {"a: [", "not valid YAML"},
    {"distributed_typ: NO", "a.yaml:1:1: distributed_typ: is unknown; did you mean"},
    {"distributed_type: MEGATRON_LM", "distributed_type: is 'MEGATRON_LM', but Snug takes"},
    {"distributed_type: FSDP", "the file does not say how it shares memory"},
    {"mixed_precision: fp8", "fp8 compute is not built"},
    {"tp_config:\n  tp_size: 2", "tp_config.tp_size: is '2'"},
    {"parallelism_config:\n  parallelism_config_cp_size: 2", "each device computes whole layers"},
    {"num_processes: 3\nnum_machines: 2", "num_processes: is 3, which 2 machines cannot share"},
    {"num_processes: many", "expected a whole number of 1 or more"},
    {"num_processes: 1\nnum_processes: 2", "is given twice"},
    {"fsdp_config:\n  fsdp_sharding_strategy: 6", "'fsdp_sharding_strategy' is '6'"},
    {"fsdp_config:\n  fsdp_reshard_after_forward: SOME_SHARD",
     "fsdp_config.fsdp_reshard_after_forward: is 'SOME_SHARD', but Snug takes"},
    {"fsdp_config:\n  fsdp_version: 3", "fsdp_config.fsdp_version: is '3'"},
    {"deepspeed_config:\n  offload_param_device: nvme", "weights on NVMe drives are not built"},
};

TEST_F(ToolConfigTest, WrongFilesOfAccelerateAreNamed) {
  for (const BadFile& bad : kBadAccelerate)
    EXPECT_TRUE(contains(accelerate_error(bad.text), bad.message)) << bad.text;
  EXPECT_TRUE(contains(accelerate_error(kFsdp, "strategy: ddp"),
                       "r.yaml:1:1: 'strategy' is ddp here, but "));
}

// A mistake has its line and the path of its key, in JSON with tabs too; they come in the order of
// the lines.
TEST_F(ToolConfigTest, MistakesHaveLines) {
  const std::string json = deepspeed_error(
      "{\n\t\"optimizer\": {\"type\": \"Lamb\",\n\t\t\"params\": {\"betas\": [0.9, 2]}},\n"
      "\t\"train_batch_size\": 64,\n\t\"fp17\": true\n}");
  const std::vector<std::string> places{
      "ds.json:2:16: optimizer.type: is 'Lamb'",
      "ds.json:3:29: optimizer.params.betas[1]: ", "ds.json:4:2: train_batch_size: is 64, but",
      "ds.json:5:2: fp17: is a key that Snug does not know"};
  size_t at = 0;
  for (const std::string& place : places) {
    const size_t found = json.find(place, at);
    EXPECT_NE(found, std::string::npos) << place << " in order in\n" << json;
    at = found == std::string::npos ? at : found;
  }
  const std::string yaml = accelerate_error(
      "distributed_type: FSDP\nnum_processes: many\nfsdp_config:\n  fsdp_version: 3\n");
  for (const char* place :
       {"a.yaml:1:1: distributed_type: is FSDP, but", "a.yaml:2:1: num_processes: is 'many'",
        "a.yaml:4:3: fsdp_config.fsdp_version: is '3'"})
    EXPECT_TRUE(contains(yaml, place)) << yaml;
}

TEST_F(ToolConfigTest, AliasesOfYamlTakeNoMemory) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{0}: &a{0} [", i);
    for (int j = 0; j < 10; ++j) bomb += fmt::format("*a{},", i - 1);
    bomb += "]\n";
  }
  EXPECT_TRUE(contains(accelerate_error(bomb), "too large"));
}

}  // namespace
}  // namespace snug::formats
