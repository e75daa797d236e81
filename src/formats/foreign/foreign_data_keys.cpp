// Keys of data, of the handling of records, and of their tokenization.
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

constexpr std::string_view kFileAdvice =
    "say data: FILE, FOLDER or org/name, and data_format where its records do not show their form, "
    "and take this out";
constexpr std::string_view kTemplateAdvice =
    "it names a template of another tool: leave it out for the model's own chat template, or say "
    "chat_template: NAME or FILE";
constexpr std::string_view kFewerAdvice =
    "all records of the data are read: say data: {path: FILE, limit: COUNT} for the first ones, or "
    "put those that are meant into a file of their own";
constexpr std::string_view kReading = "snug reads, tokenizes and keeps data its own way";
constexpr std::string_view kSpecialTokens =
    "texts and instructions have the special tokens that the tokenizer adds, and end in EOS; "
    "conversations have those that their chat template writes, and no others";
constexpr std::string_view kDataOptionAdvice =
    "snug does not have this option of TRL's data, which may change what is learned; take it out";
constexpr std::string_view kTokenAdvice =
    "special tokens are those of the model's folder: set them in its tokenizer_config.json, and "
    "take this out";
constexpr std::string_view kNewTokenAdvice =
    "added_tokens: [TOKEN, ...] adds tokens where the model has spare rows: say that, or add them "
    "with transformers, save model and tokenizer, and give that folder";
constexpr std::string_view kNoPadding = "rows are not padded, so it changes nothing";
constexpr std::string_view kNoGroups =
    "rows are not padded, so documents come as shuffle says and not by their lengths";
constexpr std::string_view kPacking =
    "how documents are put into rows follows from max_length and max_segments; no row mixes them";
constexpr std::string_view kLearnedPartAdvice =
    "loss is on answers, or with train_on_prompt: true on all; say it so";
constexpr std::string_view kLabelsAdvice =
    "which field says what is learned follows from the form of the records (data_format), of "
    "tokens 'labels'; rename the field in the data, and take this out";
constexpr std::string_view kTrainedEndAdvice =
    "the end of each answer that is learned is learned with it; say which answers with "
    "\"weight\": 0 or 1 in the data's messages, and take this out";
constexpr std::string_view kTurnEndAdvice =
    "what the chat template writes at the end of an answer is learned with it, whatever token it "
    "is: take this out where it names that token, and else say chat_template: FILE, a template "
    "that ends answers in it";
constexpr std::string_view kToolsAdvice =
    "the chat template writes tools and calls: take this out for the way of the model's own, or "
    "say chat_template: FILE, a template that writes them so";
constexpr std::string_view kImages = "only texts are trained on";

void add_data_files(ForeignRows& rows) {
  rows.refuse({"dataset_path", "data_path", "data_files", "data_paths", "train_dataset*",
               "train_files", "train_split", "custom_dataset*", "dataset_id*"},
              kFileAdvice)
      .pass_over(
          {"dataset_dir"},
          "it is read where `dataset` has names of dataset_info.json, and data names files here")
      .pass_over({"media_dir", "image_dir"}, "data and eval_data name the files")
      .pass_over({"dataset_streaming", "streaming", "preprocess_iterable"},
                 "data are read from files of any size, and every record of an epoch comes once")
      .pass_over({"eval_on_each_dataset"}, "each entry of eval_data is a set of its own")
      .refuse({"valid_dataset*", "bench_dataset"}, "say eval_data: FILE")
      .refuse({"dataset_shard_num", "dataset_shard_idx", "num_samples", "min_sample_len"},
              kFewerAdvice)
      .only({"dataset_exact_deduplication"}, kFalseOnly, kFewerAdvice)
      .pass_over({"dataloader_drop_last"}, "every document of the data is trained on")
      .pass_over({"dataset_prepared_path",
                  "dataset_num_proc",
                  "dataset_processes",
                  "preprocessing_num_workers",
                  "preprocessing_batch_size",
                  "preprocess_num_proc",
                  "overwrite_cache",
                  "tokenized_path",
                  "data_shared_file_system",
                  "buffer_size",
                  "dataset_keep_in_memory",
                  "skip_prepare_dataset",
                  "dataloader_*",
                  "load_from_cache_file",
                  "lazy_tokenize",
                  "pretrain_multipack_buffer_size",
                  "streaming_multipack_buffer_size",
                  "num_dataset_shards_to_save",
                  "remove_unused_columns",
                  "length_column_name",
                  "push_dataset_to_hub"},
                 kReading)
      .refuse({"data_collator"}, kLearnedPartAdvice)
      .only({"label_names"}, {{"labels"}}, kLabelsAdvice)
      .only({"ignore_data_skip"}, kFalseOnly,
            "a run that is resumed goes on with the records that it has not seen yet")
      .pass_over({"strict"}, "on_bad_record says what becomes of a record that is not understood")
      .pass_over({"data_seed"},
                 "seed is that of all random numbers, and so of the order in which data come")
      .pass_over({"dataset_kwargs.skip_prepare_dataset"}, kReading)
      .pass_over({"dataset_kwargs.add_special_tokens", "dataset_kwargs.append_concat_token"},
                 kSpecialTokens)
      .refuse({"dataset_kwargs.*"}, kDataOptionAdvice)
      .only({"dataset_kwargs"}, {{"{}"}}, kDataOptionAdvice);
}

void add_records(ForeignRows& rows) {
  rows.same_as({"template", "conversation", "chat_template_path", "chat_template_jinja"},
               "chat_template")
      .refuse({"prompt_template", "prompt_style", "chat_template_name_or_path"}, kTemplateAdvice)
      .refuse({"chat_template_kwargs*", "enable_thinking", "preserve_thinking"},
              "the template is rendered with its defaults; set them in a chat_template file")
      .refuse({"default_system", "default_system_message"},
              "a system message stands in the records: add it to them")
      .refuse({"tool_format", "agent_template"}, kToolsAdvice)
      .refuse({"eot_tokens"}, kTurnEndAdvice)
      .only({"assistant_only_loss", "completion_only_loss"}, kTrueOnly, kLearnedPartAdvice)
      .same_as({"completion_only", "train_on_responses_only", "train_on_completions"},
               "train_on_prompt", {{"true", "false"}, {"false", "true"}})
      .pass_over({"train_on_responses_only.*"},
                 "loss is on answers, whose begin and end the chat template shows")
      .same_as({"mask_history"}, "train_on_turns", {{"true", "last_message"}, {"false", "all"}})
      .only_said({"train_on_eos", "train_on_eot"}, {{"turn"}}, kTrainedEndAdvice)
      .only({"ignore_pad_token_for_loss"}, kTrueOnly, kNoPadding)
      .pass_over({"image_*", "video_*", "audio_*", "use_audio_in_video", "processor_type",
                  "processor_kwargs*", "max_pixels", "min_pixels", "crop_to_patches"},
                 kImages)
      .pass_over({"freeze_vision_tower", "freeze_multi_modal_projector", "freeze_mm_modules",
                  "freeze_vit", "freeze_aligner", "finetune_vision_layers"},
                 kImages)
      .only({"freeze_language_model", "freeze_llm"}, kFalseOnly, kImages)
      .only({"finetune_language_layers"}, kTrueOnly, kImages);
}

void add_tokens(ForeignRows& rows) {
  rows.pass_over({"special_tokens.pad_token", "pad_token"}, kNoPadding)
      .refuse({"special_tokens.*", "eos_token", "bos_token", "unk_token"}, kTokenAdvice)
      .same_as({"tokens", "add_tokens", "add_special_tokens", "additional_special_tokens",
                "new_special_tokens"},
               "added_tokens")
      .refuse({"added_tokens_overrides*", "init_special_tokens"}, kNewTokenAdvice)
      .pass_over({"resize_vocab"}, "added_tokens go into rows that the model has and no token uses")
      .only({"resize_token_embeddings_to_32x", "fix_untrained_tokens"}, kFalseOnly, kNewTokenAdvice)
      .pass_over(
          {"special_tokens", "tokenizer_type", "tokenizer_use_fast", "tokenizer_legacy",
           "tokenizer_use_mistral_common", "use_fast_tokenizer", "tokenizer_save_jinja_files",
           "mean_resizing_embeddings", "shrink_embeddings", "use_fast"},
          "the model's folder has its tokenizer, whose files say this")
      .refuse({"tokenizer_config", "tokenizer_name", "tokenizer_name_or_path", "tokenizer_path"},
              "the tokenizer is that of the model's folder; put its files there")
      .only({"split_special_tokens"}, kFalseOnly, "special tokens of texts are single tokens");
}

void add_rows(ForeignRows& rows) {
  rows.only({"curriculum_sampling", "sample_packing_sequentially"}, kFalseOnly,
            "documents come in a new order in each epoch, or with shuffle: false in that of the "
            "file")
      .pass_over(
          {"pad_to_sequence_len", "pad_to_multiple_of", "padding_free", "padding_side", "padding"},
          kNoPadding)
      .pass_over({"group_by_length"}, kNoGroups)
      .same_as({"train_sampling_strategy"}, "shuffle",
               {{"random", "true"}, {"sequential", "false"}, {"group_by_length", "", kNoGroups}},
               "say shuffle")
      .only({"packing_strategy"}, {{"bfd"}},
            "documents are packed whole, as with bfd: a row mixes none, and what is longer than "
            "max_length is cut")
      .pass_over({"eval_sample_packing", "eval_packing", "neat_packing", "multipack_real_batches",
                  "sample_packing_*", "batch_flattening", "block_diag_attn",
                  "pretraining_sample_concatenation", "pretrain_multipack_attn", "total_num_tokens",
                  "total_supervised_tokens", "packing_cache"},
                 kPacking)
      .same_as({"max_packed_sequence_len", "model_max_length", "block_size"}, "max_length")
      .pass_over({"max_prompt_length", "max_prompt_len", "eval_sequence_len"},
                 "max_length holds a prompt and its answer together")
      .same_as({"disable_shuffling"}, "shuffle", {{"true", "false"}, {"false", "true"}})
      .same_as({"shuffle_dataset", "dataset_shuffle", "train_dataloader_shuffle"}, "shuffle")
      .pass_over({"shuffle_merged_datasets", "shuffle_before_merging_datasets"}, "shuffle says it");
}

}  // namespace

std::vector<ToolKey> foreign_data_keys() {
  ForeignRows rows;
  add_data_files(rows);
  add_records(rows);
  add_tokens(rows);
  add_rows(rows);
  return rows.take();
}

}  // namespace snug::formats
