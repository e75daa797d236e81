#include "formats/recipe/recipe_keys.h"

#include "formats/recipe/recipe_table.h"
#include "formats/recipe/report_keys.h"

#include <algorithm>

namespace snug::formats {
namespace {

using base::word_of;

// Far above any useful value, but low enough that neither a plan's figures nor 32-bit floats
// overflow.
constexpr double kMaxMicroBatches = 1'000'000;
constexpr double kMaxThreads = 1024;
constexpr double kMaxEpochs = 1e9;

// axolotl's and unsloth's words for layers that are computed again from activations on the host.
constexpr SideWord offloaded_by(std::string_view word) {
  return {.name = "gradient_checkpointing",
          .word = word,
          .key = "activation_offloading",
          .value = "true",
          .stands_alone = true};
}

constexpr std::string_view kFp4Advice =
    "the 4-bit type fp4 is not built; use nf4, which loses less: method: qlora";

void add_model_keys(KeyTable& table) {
  table.group("Model and method", kTraining, OnResume::fixed);
  table
      .add<&Recipe::model>("model", "",
                           "a Hugging Face model folder, or a preset such as llama-3.1-8b")
      .aliases({"model_name_or_path", "base_model", "pretrained_model_name_or_path"})
      .verbs(kEverywhere)
      .on_resume(OnResume::ignored);
  table
      .add<&Recipe::method>(
          "method", Method::lora,
          "what is trained: full: all weights; lora: low-rank additions to linear "
          "layers; qlora: the same, with the linear layers stored in 4 bits; "
          "adapter: prompts that attention reads through gates; adapter_v2: the "
          "same, norms, and biases and scales of linear layers")
      .aliases({"train_type", "finetuning_type"})
      .not_built({"dora"}, "DoRA is a form of LoRA: say method: lora and use_dora: true")
      .not_built({"freeze"},
                 "say method: full and freeze_modules or trainable_modules, patterns of the "
                 "weights")
      .not_built({"pt", "sft"}, "this says no method; say method: full, lora or qlora")
      .not_built(
          {"oft", "boft", "longlora", "adalora", "llamapro", "vera", "ia3", "fourierft", "reft",
           "bone", "prefix_tuning", "prompt_tuning", "p_tuning", "loha", "lokr", "pissa"},
          "this method is not built; full, lora (also with use_dora or use_rslora), qlora, "
          "adapter and adapter_v2 are");
  table
      .add<&Recipe::load_in_4bit>("load_in_4bit", "",
                                  "store linear layers as NF4, quantised while they are read")
      .computed("true with qlora, and where the folder is quantised")
      .verbs(kEverywhere);
  table
      .add<&Recipe::load_head_in_4bit>("load_head_in_4bit", "false",
                                       "store the head as NF4 too, if it has weights of its own")
      .verbs(kEverywhere)
      .on_resume(OnResume::free);
  table
      .add<&Recipe::load_experts_in_4bit>(
          "load_experts_in_4bit", "false",
          "store the matrices of a mixture's experts as NF4 too, quantised while they are read")
      .verbs(kEverywhere);
  table
      .add<&Recipe::double_quant>(
          "double_quant", "true",
          "store the scales of NF4 blocks in 8 bits: 4.13 bits per weight instead of 4.5")
      .aliases({"bnb_4bit_use_double_quant"})
      .verbs(kEverywhere);
  table
      .add<&Recipe::adapter>("adapter", "",
                             "a PEFT adapter folder to start from, or to generate and score with")
      .aliases({"adapter_name_or_path", "init_adapter", "lora_model_dir"})
      .not_built({"lora", "qlora", "full"},
                 "it says the method, which is another key here: method: lora, qlora or full; "
                 "adapter names a folder, such as ./lora")
      .not_built({"dora"}, "it says the method: method: lora and use_dora: true")
      .verbs(kEverywhere)
      .on_resume(OnResume::ignored);
  table
      .add<&Recipe::init>("init", Init::files,
                          "read weights from the model's files, or draw them at random with its "
                          "initializer_range")
      .verbs(kEverywhere);
  table
      .add<&Recipe::trainable_modules>(
          "trainable_modules", "",
          "what method=full trains; all else is frozen. Tensors or modules by the last parts of "
          "their names, such as lm_head or mlp.down_proj, or patterns with * ? [0-9], such as "
          "layers.2[4-9]")
      .computed("all of the model");
  table
      .add<&Recipe::freeze_modules>(
          "freeze_modules", "",
          "what method=full does not train, named in the same way; wins over trainable_modules")
      .computed("nothing");
  add_adapter_keys(table);
  table
      .add<&Recipe::output_router_logits>(
          "output_router_logits", "",
          "mixtures of experts: add the loss that balances the use of experts")
      .computed("as the model's config.json says")
      .on_resume(OnResume::free);
  table.add<&Recipe::router_aux_loss_coef>("router_aux_loss_coef", "", "weight of that loss")
      .computed("as the model's config.json says")
      .range({.least = 0, .most = kMaxFloat})
      .on_resume(OnResume::free);
}

void add_data_keys(KeyTable& table) {
  table.group("Data", kTraining | kMerge, OnResume::ignored);
  table
      .add<&Recipe::data>(
          "data", "",
          "what to train on: a file, a folder, a pattern (data/*.jsonl), org/name of the hub, or a "
          "list of these and of maps {path: FILE, weight: 2, limit: 1000}; for evaluate, questions")
      .aliases({"dataset", "train_file", "train_data"})
      .verbs(kTraining | kEvaluate | kMerge);
  table
      .add<&Recipe::eval_data>("eval_data", "",
                               "what to evaluate on, as data; each entry is a set, {NAME: FILE} "
                               "names them")
      .aliases({"eval_dataset", "eval_file", "validation_file"});
  table
      .add<&Recipe::val_set_size>(
          "val_set_size", "0",
          "records of data that evaluate and do not train: below 1 a share of them, else a number; "
          "which ones depends on seed and on what they hold alone")
      .aliases({"val_size", "split_dataset_ratio", "test_size", "eval_ratio"})
      .range({.least = 0, .most = kMaxCount, .counted = "records"});
  table
      .add<&Recipe::data_format>("data_format", DataFormat::automatic,
                                 "the form of the records; auto: the one that their fields show")
      .verbs(kTraining | kEvaluate | kMerge);
  table
      .add<&Recipe::on_bad_record>(
          "on_bad_record", OnBadRecord::skip,
          "a record that cannot be learned from: skip leaves it out and names it, up to "
          "max_skipped; error trains nothing and names all of them")
      .verbs(kTraining | kGenerate | kEvaluate | kMerge);
  table
      .add<&Recipe::max_skipped>(
          "max_skipped", "0.01",
          "the share of a file's records that may be left out because their fields cannot be read; "
          "of empty and too long records it is 0.5, or this where it is more")
      .range(kFraction)
      .verbs(kTraining | kEvaluate | kMerge);
  table
      .add<&Recipe::ignore_fields>(
          "ignore_fields", "",
          "fields of records and of their messages that are read as if they were not there")
      .computed("none")
      .verbs(kTraining | kGenerate | kEvaluate | kMerge);
  table
      .add<&Recipe::fields>("fields", "",
                            "which fields of the data stand for Snug's: {prompt: question, "
                            "completion: answers.0.text}, or a text with fields in braces")
      .aliases({"column_map"})
      .computed("those that Snug knows")
      .pairs()
      .verbs(kTraining | kGenerate | kEvaluate | kMerge);
  table
      .add<&Recipe::roles>("roles", "",
                           "which roles the names in the data stand for: {customer: user}")
      .computed("those that Snug knows")
      .pairs()
      .verbs(kTraining | kGenerate | kEvaluate | kMerge);
  table
      .add<&Recipe::chat_template>("chat_template", "",
                                   "the chat template for messages: a name or a file")
      .computed("the model's own")
      .translations({{"tokenizer_default", ""}})
      .verbs(kEverywhere);
  table
      .add<&Recipe::added_tokens>("added_tokens", "",
                                  "tokens that the tokenizer gets where it lacks them, such as "
                                  "those of a chat template, in "
                                  "rows of the model that no token has; the result has them")
      .computed("none");
  table
      .add<&Recipe::max_length>(
          "max_length", "1024",
          "tokens in a row; longer documents are cut; auto, or 0: chosen from "
          "the data, so that none is cut")
      .aliases({"sequence_len", "cutoff_len", "max_seq_length", "max_seq_len", "context_length"})
      .range({.least = 2, .most = kMaxTokens, .or_zero = true})
      .translations({{"auto", "0"}})
      .verbs(kEverywhere)
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::truncation>(
          "truncation", base::Truncation::end,
          "what a record that is longer than max_length loses: end, its last tokens; keep_end, the "
          "oldest turns of a conversation or the beginning of a prompt; drop, everything: it is "
          "left out")
      .translations({{.from = "keep_start", .to = "end"},
                     {.from = "truncate", .to = "end"},
                     {.from = "right", .to = "end"},
                     {.from = "left", .to = "keep_end"},
                     {.from = "delete", .to = "drop"}})
      .aliases({"truncation_mode", "truncation_strategy", "excess_length_strategy"})
      .on_resume(OnResume::ignored);
  table
      .add<&Recipe::max_target_length>(
          "max_target_length", "0",
          "encoder-decoders: tokens in a row of answers; 0: as max_length, "
          "which is for prompts")
      .aliases({"val_max_target_length"})
      .range({.least = 2, .most = kMaxTokens, .or_zero = true})
      .verbs(kEverywhere)
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::max_segments>("max_segments", "0",
                                  "documents that a row can hold; 0: chosen from max_length")
      .range({.least = 0, .most = kMaxTokens})
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::packing>("packing", "true",
                             "put several documents into a row; none attends to another")
      .aliases({"sample_packing"})
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::train_on_prompt>("train_on_prompt", "false",
                                     "train on the prompt too, not on the answer alone")
      .aliases({"train_on_inputs", "train_on_input"});
  table
      .add<&Recipe::roles_to_train>(
          "roles_to_train", "assistant",
          "whose messages of a conversation are learned, unless a message says otherwise itself; "
          "none: those alone that say so")
      .empty_list("none");
  table.add<&Recipe::train_on_turns>(
      "train_on_turns", base::LearnedTurns::all,
      "which turns of a conversation are learned: all; last, what follows the user's last "
      "question; last_message, the last message alone");
  table.add<&Recipe::shuffle>("shuffle", "true", "a new order of the documents in every epoch")
      .on_resume(OnResume::fixed);
}

void add_length_keys(KeyTable& table) {
  table.group("Length of training", kTraining, OnResume::free);
  table
      .add<&Recipe::max_steps>("max_steps", "0",
                               "optimizer steps to run; 0: num_train_epochs decides")
      .range({.least = 0, .most = kMaxCount})
      .translations({{"-1", "0"}});
  table
      .add<&Recipe::num_train_epochs>("num_train_epochs", "3",
                                      "passes over the data, when max_steps is 0")
      .aliases({"num_epochs", "epochs"})
      .range({.least = 0, .most = kMaxEpochs, .least_excluded = true});
  table
      .add<&Recipe::per_device_train_batch_size>(
          "per_device_train_batch_size", "1",
          "rows in a micro-batch; auto, or 0: a step has gradient_accumulation_steps rows, and is "
          "split into the micro-batches that make the fastest step that fits")
      .aliases({"micro_batch_size", "batch_size"})
      .range({.least = 0, .most = kMaxSequences})
      .translations({{"auto", "0"}});
  table
      .add<&Recipe::gradient_accumulation_steps>("gradient_accumulation_steps", "1",
                                                 "micro-batches in a step")
      .range({.least = 1, .most = kMaxMicroBatches});
  table
      .add<&Recipe::train_batch_size>(
          "train_batch_size", "0",
          "rows in a step of all devices together: another number is an error; "
          "0: not checked")
      .range({.least = 0, .most = kMaxCount});
  table.add<&Recipe::seed>("seed", "42", "seed of all random numbers")
      .range(at_least(0))
      .verbs(kEverywhere)
      .on_resume(OnResume::fixed);
  table
      .add<&Recipe::deterministic>(
          "deterministic", "false",
          "the same recipe gives the same bits on a card too, at some cost in speed; on the cpu it "
          "always does")
      .aliases({"full_determinism"});
}

void add_machine_keys(KeyTable& table) {
  table.group("Machine and memory", kTraining, OnResume::ignored);
  table
      .add<&Recipe::backend>("backend", BackendName::cpu,
                             "cuda: an NVIDIA card; reference: slow and readable code that defines "
                             "what each operation "
                             "means")
      .verbs(kEverywhere);
  table
      .add<&Recipe::device>("device", "",
                            "the card to plan for, which need not be in this machine, such as "
                            "h100 or rtx-4090; implies backend=cuda")
      .computed("the card that is here")
      .not_built({"cuda", "gpu", "cpu", "mps", "xpu", "npu", "auto"},
                 "it names a card to plan for, such as h100; where a job runs says backend: cuda "
                 "or cpu")
      .verbs(bit(Verb::plan));
  table
      .add<&Recipe::hardware>("hardware", "",
                              "a file with more cards for device, in the form that docs/search.md "
                              "describes; figures of a card with a known name replace the "
                              "built-in ones")
      .computed("the built-in table alone")
      .verbs(bit(Verb::plan));
  table
      .add<&Recipe::compute_dtype>(
          "compute_dtype", ComputeDtype::automatic,
          "type of activations and matrix products; auto: bf16 where the hardware multiplies it, "
          "else fp32; fp16 scales losses (docs/fp16.md)")
      .aliases({"bf16", "torch_dtype", "dtype", "bnb_4bit_compute_dtype"})
      .translations({{"true", word_of(ComputeDtype::bf16), "bf16"},
                     {"false", word_of(ComputeDtype::fp32), "bf16"},
                     {"bfloat16", word_of(ComputeDtype::bf16)},
                     {"float16", word_of(ComputeDtype::fp16)},
                     {"half", word_of(ComputeDtype::fp16)},
                     {"float32", word_of(ComputeDtype::fp32)}})
      .verbs(kEverywhere);
  add_loss_scale_keys(table);
  table
      .add<&Recipe::recompute>(
          "recompute", Recompute::automatic,
          "activations that are computed again in the backward pass to save memory; auto: chosen "
          "for each layer, for the fastest step that fits")
      .aliases({"gradient_checkpointing", "activation_checkpointing"})
      .translations({{"true", word_of(Recompute::layer)}, {"false", word_of(Recompute::none)}})
      .side_words({offloaded_by("offload"), offloaded_by("unsloth")})
      .not_built({"offload", "offload_disk", "unsloth"},
                 "say recompute: layer and activation_offloading: true");
  table.add<&Recipe::activation_offloading>(
      "activation_offloading", "false",
      "with recompute=auto, layer or all_but_attention: activations that layers keep are moved to "
      "host memory until the backward pass");
  table
      .add<&Recipe::offload_params>(
          "offload_params", "false",
          "weights lie in pinned host memory and are copied to the device while they are used")
      .aliases({"offload_param_device", "fsdp_offload_params"})
      .translations({{"cpu", "true"}, {"none", "false"}})
      .not_built({"nvme"},
                 "weights on NVMe drives are not built; use offload_params: true, which "
                 "keeps them in host memory");
  table
      .add<&Recipe::offload_optimizer>(
          "offload_optimizer", OffloadOptimizer::none,
          "optimizer state and gradients lie in pinned host memory; stream: the device updates "
          "weights, and the state is copied to it and back; host: the host's processor updates "
          "them; auto: whichever makes the shorter step")
      .aliases({"offload_optimizer_device"})
      .translations({{"cpu", word_of(OffloadOptimizer::automatic)},
                     {"true", word_of(OffloadOptimizer::automatic)},
                     {"false", word_of(OffloadOptimizer::none)}})
      .not_built({"nvme"},
                 "optimizer state on NVMe drives is not built; use offload_optimizer: "
                 "auto, which keeps it in host memory");
  table.add_size<&Recipe::offload_threshold>(
      "offload_threshold", "64KiB",
      "tensors smaller than this stay on the device when weights or optimizer state do not");
  table.add_size<&Recipe::offload_window>(
      "offload_window", "0",
      "memory of a card for copies of what lies in host memory: with more of it copies begin "
      "earlier; one operation that needs more gets more; 0: chosen by step time");
  table
      .add_size<&Recipe::device_memory>("device_memory", "0",
                                        "budget on the device, such as 80GiB; 0: all there is")
      .verbs(kEverywhere);
  table.add_size<&Recipe::host_memory>("host_memory", "0", "budget in host memory; 0: all there is")
      .verbs(kEverywhere);
  table.add<&Recipe::threads>("threads", "0", "threads of the processor; 0: one per core")
      .aliases({"num_threads"})
      .range({.least = 0, .most = kMaxThreads})
      .verbs(kEverywhere);
  table
      .add<&Recipe::calibration>("calibration", "",
                                 "a file of rates that `snug bench calibrate` wrote")
      .computed(
          "this machine's own file in ~/.cache/snug, else the card's data sheet, else assumed "
          "rates");
  table
      .add<&Recipe::picture>("picture", "",
                             "write the plan to this file as an HTML page: memory over a step, "
                             "channels, layers, alternatives; for audit, what the data hold")
      .verbs(bit(Verb::plan));
}

void add_output_keys(KeyTable& table) {
  table.group("Output", kTraining, OnResume::ignored);
  table.add<&Recipe::output_dir>("output_dir", "", "the run's folder; of merge, the folder to make")
      .computed("runs/MODEL-METHOD")
      .verbs(kTraining | kMerge);
  table.add<&Recipe::overwrite_output_dir>("overwrite_output_dir", "false",
                                           "replace an existing run folder");
  table
      .add<&Recipe::resume_from_checkpoint>(
          "resume_from_checkpoint", word_of(Resume::none),
          "none, auto (the newest complete checkpoint of output_dir), or a checkpoint folder")
      .aliases({"auto_resume_from_checkpoints"})
      .translations({{"true", word_of(Resume::automatic)}, {"false", word_of(Resume::none)}});
  table
      .add<&Recipe::save_steps>("save_steps", "500",
                                "steps between checkpoints, or below 1 their share of all steps; "
                                "0: only at the end")
      .range(kStepsOrShare);
  table
      .add<&Recipe::save_total_limit>("save_total_limit", "0",
                                      "checkpoints to keep, the newest and the best; 0: all")
      .range({.least = 0, .most = kMaxCount});
  table.add<&Recipe::save_only_model>(
      "save_only_model", "false",
      "checkpoints have no optimizer state: they are smaller, and no run resumes from them");
  table
      .add<&Recipe::logging_steps>("logging_steps", "1",
                                   "steps between lines of the log, or below 1 their share of all "
                                   "steps; metrics.jsonl has every step")
      .range({.least = 0, .most = kMaxCount, .least_excluded = true, .counted = "steps"});
  table
      .add<&Recipe::report_to>("report_to", kNoReport,
                               "none, or tensorboard: event files in output_dir, with every step, "
                               "the evaluations and the recipe")
      .empty_list(kNoReport);
}

// Keys of other tools for features that Snug does not have yet, so that their users get an
// explanation.
void add_recognised_keys(KeyTable& table) {
  table.group("", 0, OnResume::ignored);
  table.recognise("load_in_8bit", ValueType::boolean)
      .not_built({"true"},
                 "8-bit base weights are not built; use method: lora, which keeps the "
                 "base in bf16");
  table.recognise("bnb_4bit_quant_type", ValueType::choice)
      .choices({"nf4"})
      .not_built({"fp4"}, kFp4Advice);
  table.recognise("quantize", ValueType::choice)
      .choices({"none"})
      .not_built({"bnb.nf4", "bnb.nf4-dq"},
                 "say method: qlora (or load_in_4bit: true); double_quant: false is bnb.nf4")
      .not_built({"bnb.fp4", "bnb.fp4-dq"}, kFp4Advice);
}

std::vector<RecipeKey> make_table() {
  KeyTable table;
  add_model_keys(table);
  add_objective_keys(table);
  add_rollout_keys(table);
  add_reward_keys(table);
  add_data_keys(table);
  add_length_keys(table);
  add_schedule_keys(table);
  add_optimizer_keys(table);
  add_machine_keys(table);
  add_device_keys(table);
  add_output_keys(table);
  add_evaluation_keys(table);
  add_merge_keys(table);
  add_generation_keys(table);
  add_serve_keys(table);
  add_recognised_keys(table);
  return table.take();
}

}  // namespace

const std::vector<RecipeKey>& recipe_keys() {
  static const std::vector<RecipeKey> keys = make_table();
  return keys;
}

const RecipeKey* find_recipe_key(std::string_view name) {
  for (const RecipeKey& key : recipe_keys()) {
    const bool is_alias =
        std::find(key.aliases.begin(), key.aliases.end(), name) != key.aliases.end();
    if (key.name == name || is_alias) return &key;
  }
  return nullptr;
}

}  // namespace snug::formats
