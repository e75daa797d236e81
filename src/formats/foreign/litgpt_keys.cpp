// Keys of LitGPT's recipes, which have the groups train, eval, data and optimizer.
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

using base::word_of;

constexpr std::string_view kLoraPartsAdvice =
    "say target_modules: names of linear layers, or all-linear (all but the head)";
constexpr std::string_view kFetchedDataAdvice =
    "it names a data set that LitGPT fetches: say data: FILE, a JSON, JSONL or text file";

}  // namespace

std::vector<ToolKey> litgpt_keys() {
  ForeignRows rows;
  rows.same_as({"checkpoint_dir"}, "model")
      .same_as({"out_dir"}, "output_dir")
      .same_as({"num_nodes"}, "nodes")
      .same_as({"resume"}, "resume_from_checkpoint")
      .refuse({"lora_query", "lora_key", "lora_value", "lora_projection", "lora_mlp", "lora_head"},
              kLoraPartsAdvice)
      .same_as({"train.save_interval"}, "save_steps")
      .same_as({"train.log_interval"}, "logging_steps")
      .same_as({"train.global_batch_size"}, "train_batch_size")
      .same_as({"train.micro_batch_size"}, "per_device_train_batch_size")
      .same_as({"train.lr_warmup_steps"}, "warmup_steps")
      .same_as({"train.lr_warmup_fraction"}, "warmup_ratio")
      .same_as({"train.epochs"}, "num_train_epochs")
      .same_as({"train.max_steps"}, "max_steps")
      .same_as({"train.max_seq_length"}, "max_length")
      .same_as({"train.max_norm"}, "max_grad_norm")
      .same_as({"train.min_lr"}, "min_lr")
      .refuse({"train.*"}, "say max_steps or num_train_epochs; the model says the rest")
      .same_as({"eval.interval"}, "eval_steps")
      .pass_over({"eval.*"}, "evaluations take the rows of training")
      .refuse({"data.*"}, kFetchedDataAdvice)
      .same_as({"optimizer.class_path"}, "optim",
               {{"torch.optim.AdamW", word_of(Optimizer::adamw)},
                {"bitsandbytes.optim.PagedAdamW", word_of(Optimizer::adamw)}},
               "say optim: adamw, adamw_8bit or another")
      .same_as({"optimizer.init_args.lr"}, "learning_rate")
      .same_as({"optimizer.init_args.weight_decay"}, "weight_decay")
      .same_as({"optimizer.init_args.eps"}, "adam_epsilon")
      .refuse({"optimizer.init_args.betas"}, "say adam_beta1 and adam_beta2");
  return rows.take();
}

}  // namespace snug::formats
