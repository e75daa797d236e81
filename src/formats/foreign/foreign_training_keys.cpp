// Keys of steps, learning rates and optimizers.
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

using base::word_of;

constexpr std::string_view kOneRateAdvice = "all weights have one learning rate; leave it out";
constexpr std::string_view kMinAdvice =
    "say lr_scheduler_type: cosine_with_min_lr, and min_lr_rate: the share of the learning rate "
    "that is left, or min_lr";
constexpr std::string_view kScheduleAdvice = "the learning rate rises linearly, and once";
constexpr std::string_view kEvaluated = "evaluations take the rows of training";
constexpr std::string_view kOptimizerKeysAdvice =
    "the keys of the optimizer say it: adam_beta1, adam_beta2, adam_epsilon and others (snug train "
    "--help)";

void add_step_keys(ForeignRows& rows) {
  rows.same_as({"per_gpu_train_batch_size", "train_micro_batch_size_per_gpu"},
               "per_device_train_batch_size")
      .same_as({"grad_accumulation_steps", "accumulate_grad_batches"},
               "gradient_accumulation_steps")
      .same_as({"max_epochs", "num_train_epoch", "n_epochs"}, "num_train_epochs")
      .same_as({"global_batch_size"}, "train_batch_size")
      .same_as({"clip_grad_norm", "gradient_clipping", "grad_clip", "max_norm"}, "max_grad_norm")
      .same_as({"random_state"}, "seed")
      .only({"auto_find_batch_size"}, kFalseOnly, "say per_device_train_batch_size: auto")
      .only({"max_steps_per_epoch"}, kFalseOnly, "say max_steps")
      .only({"average_tokens_across_devices"}, kTrueOnly, "each token of a step counts the same")
      .pass_over({"loss_watchdog_*"}, "guards and max_loss_increase say what stops a run")
      .pass_over(
          {"do_train", "do_eval", "do_predict", "do_bench_eval", "predict_with_generate", "train"},
          "the command says what is done, and eval_data whether there is an evaluation")
      .only({"task_type"}, {{"causal_lm"}, {"seq_2_seq_lm"}}, "language models alone are trained")
      .only({"do_causal_lm_eval", "use_ray"}, kFalseOnly, "it is not part of training here")
      .pass_over({"per_device_eval_batch_size", "per_gpu_eval_batch_size", "eval_batch_size",
                  "batch_size_val", "eval_accumulation_steps", "eval_do_concat_batches"},
                 kEvaluated)
      .pass_over({"eval_delay"}, "eval_steps says when is evaluated")
      .pass_over({"eval_use_gather_object", "batch_eval_metrics", "prediction_loss_only",
                  "compute_accuracy", "include_for_metrics", "eval_causal_lm_metrics",
                  "eval_max_new_tokens", "eval_table_size", "eval_num_beams",
                  "include_inputs_for_metrics", "acc_strategy"},
                 "an evaluation computes the loss on eval_data");
}

void add_schedule(ForeignRows& rows) {
  rows.same_as({"lr_scheduler_kwargs.min_lr", "lr_scheduler_args.min_lr"}, "min_lr")
      .same_as({"lr_scheduler_kwargs.min_lr_rate", "lr_scheduler_args.min_lr_rate"}, "min_lr_rate")
      .same_as({"lr_scheduler_kwargs.num_cycles", "lr_scheduler_args.num_cycles"}, "num_cycles")
      .same_as({"lr_scheduler_kwargs.num_stable_steps", "lr_scheduler_args.num_stable_steps"},
               "num_stable_steps")
      .same_as({"lr_scheduler_kwargs.num_decay_steps", "lr_scheduler_args.num_decay_steps"},
               "num_decay_steps")
      .same_as({"lr_scheduler_kwargs.warmup_type", "lr_scheduler_args.warmup_type"}, "warmup_type")
      .same_as({"lr_scheduler_kwargs.decay_type", "lr_scheduler_args.decay_type"}, "decay_type")
      .same_as({"lr_scheduler_kwargs.min_lr_ratio", "lr_scheduler_args.min_lr_ratio"},
               "min_lr_ratio")
      .same_as({"lr_scheduler_kwargs.warmup_lr_rate", "lr_scheduler_args.warmup_lr_rate"},
               "warmup_lr_rate")
      .same_as({"lr_scheduler_kwargs.lr_end", "lr_scheduler_args.lr_end"}, "lr_end")
      .same_as({"lr_scheduler_kwargs.power", "lr_scheduler_args.power"}, "power")
      .same_as({"lr_scheduler_kwargs.timescale", "lr_scheduler_args.timescale"}, "timescale")
      .only({"lr_scheduler_kwargs.last_epoch", "lr_scheduler_args.last_epoch"}, {{"-1"}},
            "a run that goes on knows its step")
      .refuse({"lr_scheduler_kwargs.*", "lr_scheduler_args.*"},
              "snug reads min_lr, min_lr_rate, num_cycles, num_stable_steps, num_decay_steps, "
              "warmup_type, decay_type, min_lr_ratio, warmup_lr_rate, lr_end, power and timescale "
              "of the schedules that it has")
      .only({"lr_scheduler_kwargs", "lr_scheduler_args"}, {{"{}"}},
            "it holds keys, such as {min_lr_rate: 0.1}")
      .same_as({"lr_warmup_ratio", "warmup_fraction", "lr_warmup_fraction"}, "warmup_ratio")
      .same_as({"num_warmup_steps", "lr_warmup_steps", "lr_warmup_iters"}, "warmup_steps")
      .same_as({"lr_decay_style"}, "lr_scheduler_type")
      .refuse({"cosine_min_lr_ratio", "cosine_constant_lr_ratio", "eta_min"}, kMinAdvice)
      .only({"lr_quadratic_warmup"}, kFalseOnly, kScheduleAdvice)
      .refuse({"lr_div_factor", "warmup_init_lr", "lr_warmup_init"}, kScheduleAdvice)
      .refuse({"lr_groups*", "embedding_lr", "embedding_lr_scale", "vit_lr", "aligner_lr",
               "layerwise_lr_decay*"},
              kOneRateAdvice);
}

void add_optimizer_words(ForeignRows& rows) {
  rows.same_as({"use_muon"}, "optim", {{"true", word_of(Optimizer::muon)}, {"false"}})
      .same_as({"adam_eps", "adam_eps1"}, "adam_epsilon")
      .same_as({"beta1"}, "adam_beta1")
      .same_as({"beta2"}, "adam_beta2")
      .same_as({"adafactor"}, "optim", {{"true", word_of(Optimizer::adafactor)}, {"false"}})
      .refuse({"optim_args*", "optim_config.*", "optimizer_kwargs*", "adam_beta3", "adam_epsilon2"},
              kOptimizerKeysAdvice)
      .refuse({"optim_target_modules"},
              "the optimizer steps all that trains; freeze_modules says "
              "what does not train")
      .only({"optim_layerwise", "use_layerwise_optimizer"}, kFalseOnly,
            "say optim_in_backward: true");
}

}  // namespace

std::vector<ToolKey> foreign_training_keys() {
  ForeignRows rows;
  add_step_keys(rows);
  add_schedule(rows);
  add_optimizer_words(rows);
  return rows.take();
}

}  // namespace snug::formats
