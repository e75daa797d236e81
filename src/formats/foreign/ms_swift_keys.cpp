// Keys that only ms-swift has.
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

constexpr std::string_view kSwiftMethodAdvice =
    "this method is not built; method: full, lora, qlora, adapter and adapter_v2 are";
constexpr std::string_view kTeacherAdvice =
    "teachers and models of rewards are not built; objective: grpo learns from the rewards that "
    "rewards names (docs/rewards.md)";
constexpr std::string_view kRegexAdvice =
    "freeze with freeze_modules, or name what trains with trainable_modules, both patterns with * "
    "and [0-9]";
constexpr std::string_view kCachedDataAdvice =
    "data are files here: say data: FILE, a JSON, JSONL or text file, whose records have the "
    "fields of one of the forms";
constexpr std::string_view kOwnWay = "snug loads, reads and saves its own way";

}  // namespace

std::vector<ToolKey> ms_swift_keys() {
  ForeignRows rows;
  rows.refuse({"cached_dataset", "cached_val_dataset"}, kCachedDataAdvice)
      .refuse({"columns", "columns.*"}, "say columns: {FIELD: NAME}, or fields: {NAME: FIELD}")
      .only({"load_args", "load_data_args"}, kFalseOnly,
            "args.json of another run is not read: write its keys into the recipe")
      .pass_over({"packing_length"}, "a row holds max_length tokens")
      .pass_over({"ignore_args_error",
                  "check_model",
                  "safe_serialization",
                  "create_checkpoint_symlink",
                  "download_mode",
                  "local_repo_path",
                  "disable_auto_column_mapping",
                  "shuffle_buffer_size",
                  "packing_num_proc",
                  "template_backend",
                  "norm_bbox",
                  "use_logits_to_keep",
                  "ds3_gather_for_generation",
                  "use_flash_ckpt",
                  "eval_limit",
                  "eval_metric",
                  "eval_use_evalscope",
                  "eval_dataset_args*",
                  "eval_generation_config*",
                  "extra_eval_args*",
                  "vit_gradient_checkpointing",
                  "enable_npu_model_patch",
                  "experts_impl",
                  "lora_dtype",
                  "max_model_len",
                  "tuner_backend",
                  "is_binary_loss_scale"},
                 kOwnWay)
      .only({"use_chat_template"}, kTrueOnly, "say data_format and prompt_format")
      .refuse({"response_prefix", "add_non_thinking_prefix", "disable_ignore_empty_think"},
              "the chat template writes it; say chat_template: FILE")
      .refuse({"adalora_*", "boft_*", "vera_*", "fourier_*", "reft_*", "lora_ga_*", "adapter_act",
               "adapter_length", "hqq_axis", "init_strategy", "mrl_dims", "problem_type"},
              kSwiftMethodAdvice)
      .same_as({"init_weights"}, "init_lora_weights")
      .refuse({"lorap_lr_ratio"}, "all weights have one learning rate; leave it out")
      .same_as({"target_regex"}, "target_modules")
      .only({"freeze_parameters_ratio"}, kZeroOnly, kRegexAdvice)
      .refuse({"freeze_parameters_regex", "trainable_parameters_regex"}, kRegexAdvice)
      .refuse({"moe_aux_loss_coef", "aux_loss_coef"},
              "say output_router_logits: true and router_aux_loss_coef")
      .only({"resume_only_model", "enable_dft_loss", "enable_channel_loss", "fp32_norms"},
            kFalseOnly, "this is not built; leave it out")
      .only({"zero_hpz_partition_size", "deepspeed_autotp_size"}, kOneOnly,
            "say strategy: hybrid_full_shard and shard_devices")
      .refuse({"teacher_*", "gkd_*", "lmbda", "kl_coef", "seq_kd", "sft_alpha", "cliprange*",
               "num_ppo_epochs", "num_mini_batches", "num_sample_generations", "response_length",
               "missing_eos_penalty", "vf_coef", "whiten_rewards", "lam", "local_rollout_*",
               "offload_teacher_model"},
              kTeacherAdvice);
  return rows.take();
}

}  // namespace snug::formats
