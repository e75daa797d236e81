#include "train/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/threads.h"
#include "plan/spec.h"

namespace snug::train {
namespace {

void require_file(const formats::Recipe& recipe, const char* key, const std::string& path) {
  if (!std::filesystem::exists(path))
    recipe.fail(key, fmt::format("\"{}\" does not exist; give a .json, .jsonl or .txt file", path));
}

std::unique_ptr<DataSource> load_source(const formats::Recipe& recipe, const std::string& path,
                                        const text::Tokenizer& tokenizer, int64_t row_segments,
                                        bool shuffle) {
  const text::DatasetOptions options{.max_length = static_cast<int32_t>(recipe.max_length),
                                     .train_on_prompt = recipe.train_on_prompt,
                                     .chat_template = recipe.chat_template,
                                     .form = plan::record_form(recipe.data_format),
                                     .threads = base::thread_count(recipe.threads)};
  const text::RowOptions rows{
      .max_length = static_cast<int32_t>(recipe.max_length),
      .max_segments = static_cast<int32_t>(row_segments),
      .packing = recipe.packing,
      .shuffle = shuffle,
      .seed = static_cast<uint64_t>(recipe.seed),
      .padding_id = tokenizer.pad_id().value_or(tokenizer.eos_id().value_or(0))};
  return std::make_unique<DataSource>(text::load_dataset(path, tokenizer, options), rows);
}

}  // namespace

int64_t RunData::host_bytes() const {
  int64_t bytes = 0;
  for (const DataSource* source : {training.get(), evaluation.get()})
    if (source != nullptr)
      bytes += source->dataset.documents.host_bytes() + source->rows.host_bytes();
  return bytes;
}

RunData load_data(const formats::Recipe& recipe, const models::ModelSource& model,
                  int64_t row_segments) {
  recipe.require("data");
  require_file(recipe, "data", recipe.data);
  if (!recipe.eval_data.empty()) require_file(recipe, "eval_data", recipe.eval_data);
  if (model.folder.empty())
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without a tokenizer; give the "
                                     "folder of a model to train",
                                     recipe.model));
  const auto tokenizer = text::Tokenizer::from_folder(model.folder.string());
  if (tokenizer.vocabulary_size() > model.config.vocab_size)
    base::throw_user_error(
        "the tokenizer of {} has {} ids, but config.json says vocab_size {}; these files do not "
        "belong together",
        model.folder.string(), tokenizer.vocabulary_size(), model.config.vocab_size);
  RunData data;
  data.training = load_source(recipe, recipe.data, tokenizer, row_segments, recipe.shuffle);
  if (!recipe.eval_data.empty())
    data.evaluation = load_source(recipe, recipe.eval_data, tokenizer, row_segments, false);
  return data;
}

int64_t total_steps(const formats::Recipe& recipe, text::RowSource& rows) {
  if (recipe.max_steps > 0) return recipe.max_steps;
  const auto step_rows =
      static_cast<double>(recipe.per_device_train_batch_size * recipe.gradient_accumulation_steps);
  const auto whole = static_cast<int64_t>(recipe.num_train_epochs);
  const double part = recipe.num_train_epochs - static_cast<double>(whole);
  const auto begin = static_cast<double>(rows.rows_until(whole));
  const auto end = static_cast<double>(rows.rows_until(whole + (part > 0 ? 1 : 0)));
  return std::max<int64_t>(
      1, static_cast<int64_t>(std::ceil((begin + part * (end - begin)) / step_rows)));
}

std::string describe(const text::DatasetAudit& audit, const std::string& path) {
  return fmt::format(
      "{}: {} records of form {}{}, {} documents, {} tokens, {} of them trained; longest {} "
      "tokens; "
      "{} documents cut to max_length ({} tokens lost)",
      path, audit.records, audit.form,
      audit.chat_template.empty() ? "" : fmt::format(" ({} template)", audit.chat_template),
      audit.documents, audit.tokens, audit.trained_tokens, audit.longest, audit.truncated,
      audit.cut_tokens);
}

}  // namespace snug::train
