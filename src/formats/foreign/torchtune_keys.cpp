// Keys of torchtune's recipes, which are nested, with the name of a builder in each group.
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

using base::word_of;

constexpr std::string_view kModelAdvice =
    "it names a builder of torchtune: say model: FOLDER, and method: full, lora or qlora";
constexpr std::string_view kAttentionAdvice =
    "say target_modules: names of linear layers, or all-linear";
constexpr std::string_view kBuiltOptimizerAdvice = "say optim: adamw, adamw_8bit or another";
constexpr std::string_view kFolder = "the model's folder has it";
constexpr std::string_view kMetricsFile = "metrics.jsonl in the run's folder has every step";

}  // namespace

std::vector<ToolKey> torchtune_keys() {
  ForeignRows rows;
  rows.same_as({"model.lora_rank"}, "lora_r")
      .same_as({"model.lora_alpha"}, "lora_alpha")
      .same_as({"model.lora_dropout"}, "lora_dropout")
      .same_as({"model.use_dora"}, "use_dora")
      .refuse({"model.lora_attn_modules"}, kAttentionAdvice)
      .pass_over({"model.apply_lora_to_mlp"}, "target_modules has what it adds")
      .only({"model.apply_lora_to_output"}, kFalseOnly, kAttentionAdvice)
      .only({"tokenizer.truncation_type"}, {{"right"}}, "what is too long is cut at its end")
      .refuse({"tokenizer.prompt_template.*"},
              "the texts around messages are a chat template's: say chat_template: FILE")
      .refuse({"model.*"}, kModelAdvice)
      .same_as({"tokenizer.max_seq_len"}, "max_length")
      .refuse({"tokenizer.prompt_template"},
              "it writes texts around messages, which here a chat template does: leave it out, or "
              "say chat_template: FILE")
      .pass_over({"tokenizer.*"}, kFolder)
      .same_as({"checkpointer.checkpoint_dir"}, "model")
      .refuse({"checkpointer.adapter_checkpoint"}, "say adapter: FOLDER, an adapter of PEFT")
      .refuse({"checkpointer.recipe_checkpoint"},
              "say resume_from_checkpoint: FOLDER, a checkpoint that snug wrote")
      .pass_over({"checkpointer.*"}, kFolder)
      .same_as({"run_val_every_n_steps"}, "eval_steps")
      .same_as({"optimizer.lr"}, "learning_rate")
      .same_as({"optimizer.weight_decay"}, "weight_decay")
      .same_as({"optimizer._component_"}, "optim",
               {{"torch.optim.AdamW", word_of(Optimizer::adamw)},
                {"bitsandbytes.optim.PagedAdamW", word_of(Optimizer::adamw)},
                {"bitsandbytes.optim.PagedAdamW8bit", word_of(Optimizer::adamw_8bit)},
                {"bitsandbytes.optim.AdamW8bit", word_of(Optimizer::adamw_8bit)}},
               kBuiltOptimizerAdvice)
      .pass_over({"optimizer.fused", "optimizer.foreach"}, "the update is snug's own")
      .refuse({"optimizer.*"}, kBuiltOptimizerAdvice)
      .same_as({"lr_scheduler._component_"}, "lr_scheduler_type",
               {{"torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup",
                 word_of(Schedule::cosine)},
                {"torchtune.modules.get_cosine_schedule_with_warmup", word_of(Schedule::cosine)}},
               "say lr_scheduler_type")
      .same_as({"lr_scheduler.num_warmup_steps"}, "warmup_steps")
      .same_as({"lr_scheduler.num_cycles"}, "num_cycles")
      .refuse({"lr_scheduler.*"}, "say lr_scheduler_type")
      .same_as({"loss._component_"}, "objective",
               {{"torchtune.modules.loss.LinearCrossEntropyLoss"},
                {"torchtune.modules.loss.CEWithChunkedOutputLoss"},
                {"torch.nn.CrossEntropyLoss"},
                {"torchtune.rlhf.loss.DPOLoss", word_of(Objective::dpo)}},
               "say objective")
      .same_as({"loss.beta"}, "beta")
      .refuse(
          {"kd_loss.*", "kd_ratio"},
          "learning from a teacher is not built; objective: dpo, orpo and kto learn from answers "
          "that are there")
      .same_as({"loss.label_smoothing"}, "label_smoothing_factor")
      .pass_over({"loss.*"}, "the loss is that of the objective")
      .same_as({"enable_activation_checkpointing"}, "activation_checkpointing")
      .same_as({"enable_activation_offloading"}, "activation_offloading")
      .pass_over({"metric_logger.*", "log_every_n_steps", "log_peak_memory_stats"}, kMetricsFile)
      .refuse({"quantizer.*", "fusion*"}, "weights are in 16 bits, or in NF4 with method: qlora");
  return rows.take();
}

}  // namespace snug::formats
