// Keys of methods and adapters, and of learning from preferences.
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

using base::word_of;

constexpr std::string_view kMethodAdvice = "say method: full, lora or qlora";
constexpr std::string_view kLlamaProAdvice =
    "snug expand adds the layers and says which trainable_modules train them alone; take this out, "
    "and say method: full and those modules";
constexpr std::string_view kTargetsNote =
    "target_modules says which modules have an adapter; where it is not given, all linear layers "
    "have one, so name there those that are meant";
constexpr std::string_view kVariantAdvice =
    "this form of LoRA is not built; method: lora is, with use_rslora and use_dora";
constexpr std::string_view kTyingAdvice =
    "an embedding that is the head, too, gets an adapter for one of the two; two that are one are "
    "applied, and not trained";
constexpr std::string_view kBiasAdvice =
    "LoRA trains no biases here: leave it out, or say method: full, which trains all weights and "
    "biases";
constexpr std::string_view kOtherMethodAdvice =
    "this method is not built; method: full, lora, qlora, adapter and adapter_v2 are";
constexpr std::string_view kFreezingAdvice =
    "freeze with freeze_modules, or name what trains with trainable_modules, both patterns with * "
    "and [0-9]";
constexpr std::string_view kReferenceAdvice =
    "the reference is the model as it begins; another one, or one that follows, is not built";
constexpr std::string_view kLossPartAdvice =
    "this part of the loss is not built; leave it out, or 0";
constexpr std::string_view kRewardsAdvice =
    "it is not built; objective: grpo learns from the rewards that rewards names "
    "(docs/rewards.md)";
constexpr std::string_view kRewardModelAdvice =
    "rewards by a model are not built; rewards: exec:PROGRAM asks a program of yours";
constexpr std::string_view kRewardFunctionsAdvice =
    "functions in Python are not called: name scores, as in rewards: [exact, "
    "\"format:<think>.*\"], "
    "or a program of yours, rewards: [\"exec:python3 judge.py\"], which may call them "
    "(docs/rewards.md)";
constexpr std::string_view kOneEngine =
    "answers are made by the weights that train, in place, without another engine";

void add_methods(ForeignRows& rows) {
  rows.same_as({"use_peft"}, "method", {{"true"}, {"false", word_of(Method::full)}}, kMethodAdvice)
      .same_as({"full_finetune", "full_finetuning"}, "method",
               {{"true", word_of(Method::full)}, {"false"}}, kMethodAdvice)
      .same_as({"use_lora", "lora", "enable_lora"}, "method",
               {{"true"}, {"false", word_of(Method::full)}}, kMethodAdvice)
      .same_as({"use_qlora", "qlora"}, "method", {{"true", word_of(Method::qlora)}, {"false"}},
               kMethodAdvice)
      .same_as({"tuner_type", "sft_type", "peft_type"}, "method",
               {{"full", word_of(Method::full)},
                {"lora", word_of(Method::lora)},
                {"qlora", word_of(Method::qlora)}},
               kOtherMethodAdvice)
      .only({"use_llama_pro"}, kFalseOnly, kLlamaProAdvice)
      .refuse({"num_new_layers", "num_expand"}, kLlamaProAdvice)
      .only({"use_galore", "use_apollo", "use_badam", "use_adam_mini", "relora", "use_onebitllms",
             "pissa_init", "pissa_convert", "use_pissa", "loftq_init", "use_oft", "use_swift_lora",
             "use_dft_loss", "use_asft_loss", "use_eaft_loss", "use_eaft", "use_pose",
             "scaling_softmax"},
            kFalseOnly, kOtherMethodAdvice)
      .only({"relora_steps"}, kZeroOnly, kOtherMethodAdvice)
      .only({"jagged_restart_steps"}, kZeroOnly,
            "the learning rate rises and falls once: beginning again is not built")
      .pass_over({"galore_*", "apollo_*", "badam_*", "pissa_iter", "relora_*", "oft_*", "asft_*",
                  "eaft_*", "pose_*", "jagged_restart_*", "scaling_softmax_*", "llamapro_*"},
                 "what they belong to is off")
      .refuse({"lisa_*", "spectrum_*", "qgalore_*", "dion_*", "diffusion.*", "ebft.*"},
              kOtherMethodAdvice)
      .refuse({"unfrozen_parameters", "freeze_trainable_layers", "freeze_trainable_modules",
               "freeze_extra_modules", "freeze_parameters", "trainable_parameters"},
              kFreezingAdvice);
}

void add_lora(ForeignRows& rows) {
  rows.same_as({"lora_target_linear"}, "target_modules",
               {{"true", "all-linear"}, {"false", "", kTargetsNote}})
      .same_as({"peft_use_rslora", "peft_config.use_rslora"}, "use_rslora")
      .same_as({"peft_use_dora", "peft_config.use_dora"}, "use_dora")
      .same_as({"peft_config.r", "peft_config.lora_r", "lora_config.r"}, "lora_r")
      .same_as({"peft_config.lora_alpha", "lora_config.lora_alpha"}, "lora_alpha")
      .same_as({"peft_config.lora_dropout", "lora_config.lora_dropout"}, "lora_dropout")
      .same_as({"peft_config.target_modules", "lora_config.target_modules"}, "target_modules")
      .same_as({"peft_config.name", "peft_config.peft_type"}, "method",
               {{"lora", word_of(Method::lora)}}, kOtherMethodAdvice)
      .only({"finetune_attention_modules", "finetune_mlp_modules"}, kTrueOnly,
            "say target_modules: those that are meant")
      .only({"lora_bias", "lora_config.lora_bias", "peft_config.lora_bias"}, {{"none"}, {"false"}},
            kBiasAdvice)
      .only({"bias", "lora_config.bias", "peft_config.bias"}, {{"none"}}, kBiasAdvice)
      .only({"lora_task_type", "peft_config.task_type", "lora_config.task_type"},
            {{"CAUSAL_LM"}, {"SEQ_2_SEQ_LM"}}, "language models alone are trained")
      .pass_over({"lora_fan_in_fan_out", "fan_in_fan_out"},
                 "how a weight lies follows from the model")
      .refuse({"peft_layers_pattern", "peft_layer_replication*", "peft_trainable_token_indices*",
               "module_dropout", "loftq_config*", "peft.*", "peft_config.*", "lora_config.*"},
              kVariantAdvice)
      .refuse({"exclude_modules", "layers_pattern", "layer_replication*", "use_qalora",
               "trainable_token_indices*", "alora_invocation_tokens*", "eva_config*",
               "corda_config*", "lora_ga_config*", "arrow_config*", "use_bdlora*"},
              kVariantAdvice)
      .only({"ensure_weight_tying", "peft_ensure_weight_tying"}, kFalseOnly, kTyingAdvice)
      .only({"create_new_adapter"}, kFalseOnly,
            "an adapter that is given is trained on: merge it into the model first for a new one, "
            "and take this out")
      .refuse({"adapter_folder"}, "say adapter: FOLDER, the folder that has adapter_config.json")
      .same_as({"merge_lora"}, "merge")
      .pass_over({"merge_method", "qlora_merge"},
                 "snug merge computes in fp32 and rounds once, and says how far the result is from "
                 "what was trained");
}

void add_preferences(ForeignRows& rows) {
  rows.same_as({"rlhf_type"}, "objective")
      .same_as({"kto_desirable_weight"}, "desirable_weight")
      .same_as({"kto_undesirable_weight"}, "undesirable_weight")
      .same_as({"orpo_alpha", "trl.beta"}, "beta")
      .same_as({"dpo_loss_type"}, "loss_type")
      .same_as({"noisy_embedding_alpha", "neftune_alpha"}, "neftune_noise_alpha")
      .only({"rpo_alpha", "pref_ftx", "cpo_alpha", "ld_alpha", "center_rewards_coefficient",
             "tpo_alpha"},
            kZeroOnly, kLossPartAdvice)
      .only({"loss_weights", "dpo_loss_weights"}, {{"1"}}, kLossPartAdvice)
      .pass_over({"discopop_tau", "f_alpha_divergence_coef", "pref_bco_weight"},
                 "it belongs to a loss that is not chosen")
      .only({"f_divergence_type"}, {{"reverse_kl"}}, kLossPartAdvice)
      .only({"use_weighting", "dpo_use_weighting", "dpo_norm_loss", "reference_free",
             "sync_ref_model"},
            kFalseOnly, kReferenceAdvice)
      .only({"disable_dropout"}, kTrueOnly, "the objectives of answers have no dropout")
      .pass_over({"precompute_ref_batch_size", "precompute_ref_eval_batch_size"},
                 "the reference is computed within the step")
      .pass_over({"ref_model_mixup_alpha", "ref_model_sync_steps"},
                 "the reference stays the model as it begins")
      .pass_over({"dpo_use_logits_to_keep", "dpo_padding_free"}, "rows are not padded")
      .pass_over({"dpo_generate_during_eval", "generate_during_eval"},
                 "an evaluation computes the loss on eval_data")
      .refuse({"ref_model*", "ref_adapter*"}, kReferenceAdvice)
      .only({"reward_model", "process_reward_model"}, kFalseOnly, kRewardModelAdvice)
      .refuse({"reward_weights", "trl.reward_weights"},
              "say each weight behind the name of its reward: rewards: {exact: 1, "
              "\"format:<think>.*\": 0.2}")
      .refuse({"trl.*", "reward_*", "ppo_*", "grpo_*", "distillation_*", "eval_num_prompts",
               "accuracy_eval_num_examples"},
              kRewardsAdvice);
}

// Of TRL's GRPOTrainer, and of axolotl, which has its keys in a map of that name.
void add_rollouts(ForeignRows& rows) {
  rows.same_as({"trl.num_generations"}, "num_generations")
      .same_as({"trl.max_completion_length"}, "max_completion_length")
      .same_as({"trl.num_iterations"}, "num_iterations")
      .same_as({"trl.epsilon"}, "epsilon")
      .same_as({"trl.epsilon_high"}, "epsilon_high")
      .same_as({"trl.delta"}, "delta")
      .same_as({"trl.scale_rewards"}, "scale_rewards")
      .same_as({"trl.loss_type"}, "loss_type")
      .same_as({"trl.mask_truncated_completions"}, "mask_truncated_completions")
      .same_as({"trl.importance_sampling_level"}, "importance_sampling_level")
      .same_as({"trl.temperature"}, "temperature")
      .same_as({"trl.top_p"}, "top_p")
      .same_as({"trl.top_k"}, "top_k")
      .same_as({"trl.min_p"}, "min_p")
      .same_as({"trl.repetition_penalty"}, "repetition_penalty");
  rows.refuse({"reward_funcs", "trl.reward_funcs", "reward_functions"}, kRewardFunctionsAdvice)
      .refuse({"generation_batch_size"},
              "say steps_per_generation: micro-batches whose answers are made at once")
      .only({"use_bias_correction_kl"}, kTrueOnly, "the divergence is multiplied by the ratio")
      .pass_over({"vllm.*", "trl.use_vllm", "trl.vllm_*", "use_transformers_paged"}, kOneEngine)
      .pass_over({"trl.log_completions", "log_unique_prompts"},
                 "some answers of each step stand in samples.jsonl");
}

}  // namespace

std::vector<ToolKey> foreign_adapter_keys() {
  ForeignRows rows;
  add_methods(rows);
  add_lora(rows);
  add_rollouts(rows);
  add_preferences(rows);
  return rows.take();
}

}  // namespace snug::formats
