// What the table says of each key where a run goes on from a checkpoint.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "formats/recipe/recipe_keys.h"

namespace snug::formats {
namespace {

using Names = std::set<std::string_view>;

// The keys of training that a recipe holds.
Names training_keys(OnResume on_resume) {
  Names names;
  for (const RecipeKey& key : recipe_keys())
    if (key.field.get != nullptr && key.belongs_to(Verb::train) && key.on_resume == on_resume)
      names.insert(key.name);
  return names;
}

// What decides which tensors there are, which documents, and where random numbers come from.
TEST(KeysOnResume, ThoseThatMakeAnotherRun) {
  EXPECT_EQ(training_keys(OnResume::fixed), (Names{"method",
                                                   "objective",
                                                   "precompute_ref_log_probs",
                                                   "load_in_4bit",
                                                   "double_quant",
                                                   "init",
                                                   "lora_r",
                                                   "lora_alpha",
                                                   "layers_to_transform",
                                                   "rank_pattern",
                                                   "alpha_pattern",
                                                   "target_modules",
                                                   "use_rslora",
                                                   "use_dora",
                                                   "init_lora_weights",
                                                   "modules_to_save",
                                                   "adapter_len",
                                                   "adapter_layers",
                                                   "adapter_gates",
                                                   "freeze_modules",
                                                   "trainable_modules",
                                                   "optim",
                                                   "ema_decay",
                                                   "loss_scale",
                                                   "max_length",
                                                   "initial_scale_power",
                                                   "max_segments",
                                                   "max_target_length",
                                                   "packing",
                                                   "shuffle",
                                                   "seed"}));
}

// Of files and element types, what they amount to is compared; the rest changes no number.
TEST(KeysOnResume, ThoseThatAreNotCompared) {
  EXPECT_EQ(training_keys(OnResume::ignored), (Names{"model",
                                                     "adapter",
                                                     "data",
                                                     "eval_data",
                                                     "val_set_size",
                                                     "data_format",
                                                     "on_bad_record",
                                                     "max_skipped",
                                                     "ignore_fields",
                                                     "fields",
                                                     "roles",
                                                     "truncation",
                                                     "chat_template",
                                                     "added_tokens",
                                                     "train_on_prompt",
                                                     "roles_to_train",
                                                     "train_on_turns",
                                                     "compute_dtype",
                                                     "fp16",
                                                     "output_dir",
                                                     "eval_steps",
                                                     "eval_strategy",
                                                     "eval_metrics",
                                                     "eval_on_start",
                                                     "eval_generate",
                                                     "max_new_tokens",
                                                     "batch",
                                                     "save_strategy",
                                                     "load_best_model_at_end",
                                                     "metric_for_best_model",
                                                     "greater_is_better",
                                                     "early_stopping_patience",
                                                     "early_stopping_threshold",
                                                     "guards",
                                                     "max_loss_increase",
                                                     "loss_increase_steps",
                                                     "overwrite_output_dir",
                                                     "resume_from_checkpoint",
                                                     "save_steps",
                                                     "save_total_limit",
                                                     "save_only_model",
                                                     "merge",
                                                     "max_shard_size",
                                                     "base",
                                                     "merge_into",
                                                     "max_drift",
                                                     "drift_tokens",
                                                     "drift_dtype",
                                                     "logging_steps",
                                                     "report_to",
                                                     "device_memory",
                                                     "host_memory",
                                                     "threads",
                                                     "calibration",
                                                     "backend",
                                                     "optim_in_backward",
                                                     "recompute",
                                                     "offload_params",
                                                     "activation_offloading",
                                                     "offload_window",
                                                     "offload_optimizer",
                                                     "offload_threshold",
                                                     "timeout_seconds",
                                                     "reward_timeout",
                                                     "reward_memory",
                                                     "prefetch"}));
}

// All others change what is learned from here on.
TEST(KeysOnResume, ThoseThatMayChange) {
  EXPECT_EQ(training_keys(OnResume::free), (Names{"load_head_in_4bit",
                                                  "lora_dropout",
                                                  "output_router_logits",
                                                  "router_aux_loss_coef",
                                                  "beta",
                                                  "desirable_weight",
                                                  "undesirable_weight",
                                                  "loss_type",
                                                  "label_smoothing",
                                                  "simpo_gamma",
                                                  "rewards",
                                                  "reward_fields",
                                                  "label_smoothing_factor",
                                                  "neftune_noise_alpha",
                                                  "loraplus_lr_ratio",
                                                  "loraplus_lr_embedding",
                                                  "max_steps",
                                                  "num_train_epochs",
                                                  "per_device_train_batch_size",
                                                  "gradient_accumulation_steps",
                                                  "train_batch_size",
                                                  "deterministic",
                                                  "learning_rate",
                                                  "lr_scheduler_type",
                                                  "warmup_ratio",
                                                  "warmup_steps",
                                                  "min_lr",
                                                  "min_lr_rate",
                                                  "num_cycles",
                                                  "num_stable_steps",
                                                  "num_decay_steps",
                                                  "warmup_type",
                                                  "decay_type",
                                                  "min_lr_ratio",
                                                  "warmup_lr_rate",
                                                  "lr_end",
                                                  "power",
                                                  "timescale",
                                                  "gradient_dtype",
                                                  "weight_decay",
                                                  "adam_beta1",
                                                  "adam_beta2",
                                                  "adam_epsilon",
                                                  "decay_rate",
                                                  "clip_threshold",
                                                  "muon_momentum",
                                                  "nesterov",
                                                  "ns_coefficients",
                                                  "ns_steps",
                                                  "muon_epsilon",
                                                  "adjust_lr_fn",
                                                  "max_grad_norm",
                                                  "loss_scale_window",
                                                  "hysteresis",
                                                  "min_loss_scale",
                                                  "strategy",
                                                  "devices",
                                                  "nodes",
                                                  "shard_devices",
                                                  "reduce_dtype",
                                                  "shard_threshold"}));
}

}  // namespace
}  // namespace snug::formats
