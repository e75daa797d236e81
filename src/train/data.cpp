#include "train/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/threads.h"
#include "plan/choice/choose_rows.h"
#include "plan/choice/fit.h"
#include "plan/job/rank_grid.h"
#include "plan/spec/objective_spec.h"
#include "runtime/process/process_memory.h"
#include "text/record/bad_records.h"
#include "train/row_bounds.h"
#include "train/trained_chat.h"

namespace snug::train {
namespace {

void require_file(const formats::Recipe& recipe, const char* key, const std::string& path) {
  if (!std::filesystem::exists(path))
    recipe.fail(
        key,
        fmt::format("\"{}\" does not exist; give a file of records, such as .jsonl or .parquet",
                    path));
  base::require_regular(path);
}

// The model's tokenizer, opened when the first file needs it: tokens do not.
class LazyTokenizer {
 public:
  LazyTokenizer(const formats::Recipe& recipe, const models::ModelSource& model)
      : recipe_(recipe), model_(model) {}

  const text::Tokenizer& open() {
    if (tokenizer_) return *tokenizer_;
    if (model_.folder.empty())
      recipe_.fail("model", fmt::format("\"{}\" is a built-in shape without a tokenizer; give the "
                                        "folder of a model, or data of tokens (input_ids)",
                                        recipe_.model));
    tokenizer_.emplace(text::Tokenizer::from_folder(
        model_.folder.string(), model_.config.vocab_size, recipe_.adapter, recipe_.added_tokens));
    tell_tokens_of_adapter(*tokenizer_, recipe_, model_);
    return *tokenizer_;
  }

  void try_open() {
    try {
      open();
    } catch (const base::UserError&) {
      tokenizer_.reset();
    }
  }

  // Fills the tails of rows, which nothing reads.
  int32_t padding_id() const {
    if (!tokenizer_) return 0;
    const int32_t padding = tokenizer_->pad_id().value_or(tokenizer_->eos_id().value_or(0));
    return padding < model_.config.vocab_size ? padding : 0;
  }

 private:
  const formats::Recipe& recipe_;
  const models::ModelSource& model_;
  std::optional<text::Tokenizer> tokenizer_;
};

base::PerStream<int32_t> as_lengths(const base::PerStream<int64_t>& row_tokens) {
  return row_tokens.map([](int64_t tokens) { return static_cast<int32_t>(tokens); });
}

// The tokens that a document has room for; those of a group share a row.
int32_t document_tokens(const formats::Recipe& recipe, const base::PerStream<int64_t>& row_tokens) {
  return static_cast<int32_t>(row_tokens.has_encoder() ? row_tokens.decoder() : recipe.max_length);
}

int32_t encoder_tokens(const base::PerStream<int64_t>& row_tokens) {
  return row_tokens.has_encoder() ? as_lengths(row_tokens)[base::TokenStream::encoder] : 0;
}

plan::JobDocuments documents_of(std::initializer_list<const text::Dataset*> datasets,
                                int64_t group) {
  plan::JobDocuments documents{.files = {}, .group = group};
  for (const text::Dataset* dataset : datasets) {
    const text::DocumentStore& store = dataset->documents;
    if (store.size() == 0) continue;
    documents.files.push_back(store.lengths());
    documents.least = std::max<int64_t>(documents.least, store.least());
  }
  return documents;
}

// An objective says of which form the records must be.
std::optional<text::RecordForm> wanted_form(const formats::Recipe& recipe) {
  const formats::DataFormat own = methods::objective_of(recipe.objective).data;
  return plan::record_form(own == formats::DataFormat::automatic ? recipe.data_format : own);
}

// Seen from the first records.
bool needs_tokenizer(const formats::Recipe& recipe, const models::ModelSource& model) {
  const text::RecordMapping mapping = plan::record_mapping(recipe);
  const text::RecordRules rules{.form = wanted_form(recipe),
                                .has_encoder = model.config.has_encoder(),
                                .ignored = recipe.ignore_fields,
                                .mapping = mapping.is_empty() ? nullptr : &mapping};
  const auto needs = [&](const std::string& path) { return text::needs_tokenizer(path, rules); };
  return needs(recipe.data) || (!recipe.eval_data.empty() && needs(recipe.eval_data));
}

// What reading the files may hold beyond what the process holds before: one is read at a time.
int64_t reading_bytes_of(const formats::Recipe& recipe) {
  int64_t bytes = 0;
  for (const std::string& path : {recipe.data, recipe.eval_data})
    if (!path.empty()) bytes = std::max(bytes, text::reading_bytes(path));
  return bytes;
}

// Both files, so that one run tells of the bad records of both.
std::pair<text::Dataset, text::Dataset> load_both(
    const formats::Recipe& recipe, const std::function<text::Dataset(const std::string&)>& load) {
  std::pair<text::Dataset, text::Dataset> both;
  std::string bad;
  try {
    both.first = load(recipe.data);
  } catch (const text::BadRecordsError& error) {
    bad = error.what();
  }
  try {
    both.second = load(recipe.eval_data);
  } catch (const text::BadRecordsError& error) {
    bad += (bad.empty() ? "" : ";\n") + std::string(error.what());
  }
  if (!bad.empty()) throw base::UserError(bad);
  return both;
}

// The mean tokens of documents in a row of the first epoch.
double mean_row_tokens(DataSource& source) {
  return static_cast<double>(source.dataset.documents.tokens()) /
         static_cast<double>(source.rows.rows_until(1));
}

// What no length that is chosen could hold.
std::string cut_text(const RunData& data, const models::ModelConfig& model) {
  int64_t cut = data.training->dataset.audit.truncated;
  if (data.evaluation != nullptr) cut += data.evaluation->dataset.audit.truncated;
  if (cut == 0) return "";
  return fmt::format(
      "; {} longer document{} cut: {} tokens are the most that {}", cut, cut == 1 ? " is" : "s are",
      plan::most_tokens(model),
      model.max_position <= plan::kMaxAutoLength ? "the model has positions for" : "auto takes");
}

}  // namespace

int64_t RunData::host_bytes() const {
  int64_t bytes = 0;
  for (const DataSource* source : {training.get(), evaluation.get()})
    if (source != nullptr)
      bytes += source->dataset.documents.host_bytes() + source->rows.host_bytes() +
               static_cast<int64_t>(source->reference.size() * sizeof(float));
  return bytes;
}

plan::DataFacts RunData::facts() const {
  return {.documents = documents,
          .expected = expected_bounds(training->rows),
          .reading_bytes = reading_bytes,
          .rows = {.training = training->rows.rows_until(1),
                   .evaluation = evaluation ? evaluation->rows.rows_until(1) : 0}};
}

void RunData::make_rows(const plan::TrainingSpec& spec) {
  for (DataSource* source : {training.get(), evaluation.get()})
    if (source != nullptr)
      source->rows.set_rows(as_lengths(spec.row_tokens), static_cast<int32_t>(spec.row_segments));
}

int64_t best_times(const plan::TrainingInputs& inputs, RunData& data,
                   const plan::MeasureProcess& measure) {
  plan::LengthChoice choice(inputs, data.documents, data.reading_bytes, measure);
  while (const auto spec = choice.next()) {
    data.make_rows(*spec);
    choice.take({data.facts(), mean_row_tokens(*data.training)});
  }
  return choice.best_times();
}

formats::Recipe with_length_of_data(const plan::TrainingInputs& inputs, RunData& data,
                                    int64_t times, std::string_view why) {
  formats::Recipe recipe = plan::with_length(inputs.recipe, data.documents.shortest_rows(), times);
  data.make_rows(plan::training_spec(plan::with_fewest_rows(recipe), inputs.model.config,
                                     inputs.target, data.documents));
  base::PerStream<int64_t> tokens = recipe.max_length;
  if (inputs.model.config.has_encoder()) tokens = {recipe.max_target_length, recipe.max_length};
  const double fill = mean_row_tokens(*data.training) / static_cast<double>(tokens.sum());
  base::say(
      "max_length=auto: {}, {}the longest document, rows {:.1f} % full, "
      "gradient_accumulation_steps={}{}{}",
      plan::length_text(tokens), times == 1 ? "" : fmt::format("{} times ", times), 100 * fill,
      recipe.gradient_accumulation_steps, why, cut_text(data, inputs.model.config));
  return recipe;
}

RunData load_data(const formats::Recipe& given, const models::ModelSource& model,
                  const program::Target& target) {
  const formats::Recipe recipe = plan::with_open_length(given, model.config);
  plan::TrainingSpec spec = plan::training_spec(recipe, model.config, target);
  recipe.require("data");
  require_file(recipe, "data", recipe.data);
  if (!recipe.eval_data.empty()) require_file(recipe, "eval_data", recipe.eval_data);
  if (recipe.eval_data.empty() && recipe.eval_steps > 0)
    recipe.fail("eval_steps", "asks for evaluations, but there is no eval_data");
  const base::PerStream<int64_t> row_tokens = plan::row_tokens(recipe, model.config.has_encoder());
  const text::DatasetOptions options{
      .max_length = document_tokens(recipe, row_tokens),
      .encoder_length = encoder_tokens(row_tokens),
      .padding_id = static_cast<int32_t>(model.config.padding_id),
      .repeats_prompt = model.config.repeats_prompt,
      .train_on_prompt = recipe.train_on_prompt,
      .learning = plan::learning_rules(recipe),
      .train_on_chosen_prompt = methods::objective_of(recipe.objective).learns_prompts,
      .chat_template = recipe.chat_template,
      .form = wanted_form(recipe),
      .ignored_fields = recipe.ignore_fields,
      .mapping = plan::record_mapping(recipe),
      .skips = plan::skip_limits(recipe),
      .truncation = recipe.truncation,
      .mismatch_batch = plan::mismatch_batch(recipe),
      .positions = model.config.max_position,
      .vocabulary = model.config.vocab_size,
      .threads = base::thread_count(recipe.threads)};
  LazyTokenizer tokenizer(recipe, model);
  std::vector<formats::NewToken> added;
  if (!recipe.added_tokens.empty()) {
    added = new_tokens(tokenizer.open());
    tell_new_tokens(added, recipe);
  }
  // Before the bound is known, since what it takes to open one is no part of it.
  // Where there is none, reading tells of it, after what is wrong with the records before.
  if (needs_tokenizer(recipe, model)) tokenizer.try_open();
  runtime::release_freed_memory();
  const int64_t reading = runtime::process_memory().resident_bytes + reading_bytes_of(recipe);
  plan::require_room_to_read(recipe,
                             std::max(reading, runtime::process_memory().resident_peak_bytes));
  const auto load = [&](const std::string& path) {
    if (path.empty()) return text::Dataset{};
    return text::load_dataset(
        path, [&]() -> const text::Tokenizer& { return tokenizer.open(); }, options);
  };
  auto [training, evaluation] = load_both(recipe, load);
  RunData data;
  const int64_t group = methods::objective_of(recipe.objective).group;
  data.documents = documents_of({&training, &evaluation}, group);
  data.documents.shape_rows(spec);
  text::RowOptions rows{.max_length = as_lengths(row_tokens),
                        .max_segments = static_cast<int32_t>(spec.row_segments),
                        .packing = recipe.packing,
                        .shuffle = recipe.shuffle,
                        .seed = static_cast<uint64_t>(recipe.seed),
                        .padding_id = tokenizer.padding_id(),
                        .group = static_cast<int32_t>(group),
                        .start_id = static_cast<int32_t>(model.config.decoder_start_id)};
  data.training = std::make_unique<DataSource>(std::move(training), rows);
  rows.shuffle = false;
  if (!recipe.eval_data.empty())
    data.evaluation = std::make_unique<DataSource>(std::move(evaluation), rows);
  if (recipe.precompute_ref_log_probs)
    for (DataSource* source : {data.training.get(), data.evaluation.get()})
      if (source != nullptr)
        source->reference.resize(static_cast<size_t>(source->dataset.documents.size()));
  data.reading_bytes = reading + data.host_bytes();
  data.chat = trained_chat(data.training->dataset.audit, model, recipe.adapter);
  data.chat.added_tokens = std::move(added);
  return data;
}

bool has_tokenizer_for(const formats::Recipe& recipe, const models::ModelSource& model) {
  return !model.folder.empty() || !needs_tokenizer(recipe, model);
}

RunLength run_length(const formats::Recipe& recipe, text::RowSource& rows) {
  if (recipe.max_steps > 0) return {.steps = recipe.max_steps};
  const int64_t most = rows.most_epochs();
  if (!(recipe.num_train_epochs < static_cast<double>(most)))
    recipe.fail("num_train_epochs",
                fmt::format("is {}, but of this data at most {} epochs can be counted; give fewer, "
                            "or max_steps",
                            recipe.num_train_epochs, most - 1));
  const int64_t step_rows = std::max<int64_t>(1, recipe.per_device_train_batch_size) *
                            recipe.gradient_accumulation_steps * plan::rank_grid(recipe).ranks();
  const auto whole = static_cast<int64_t>(recipe.num_train_epochs);
  const double part = recipe.num_train_epochs - static_cast<double>(whole);
  const auto begin = static_cast<double>(rows.rows_until(whole));
  const auto end = static_cast<double>(rows.rows_until(whole + (part > 0 ? 1 : 0)));
  const auto end_row =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(begin + part * (end - begin))));
  return length_after({.steps = 0, .end_row = end_row}, 0, 0, step_rows);
}

RunLength length_after(const RunLength& length, int64_t steps, int64_t rows, int64_t step_rows) {
  if (length.end_row == std::numeric_limits<int64_t>::max()) return length;
  const int64_t left = std::max<int64_t>(0, length.end_row - rows);
  return {.steps = steps + (left + step_rows - 1) / step_rows, .end_row = length.end_row};
}

std::string describe(const text::DatasetAudit& audit, const std::string& path) {
  std::string text = fmt::format(
      "{}: {} records of form {}{}{}{}, {} documents, {} tokens, {} of them trained; longest {} "
      "tokens; {} documents cut to max_length ({} tokens lost)",
      path, audit.records, audit.form,
      audit.chat_field.empty() ? ""
                               : fmt::format(", conversations for their '{}'", audit.chat_field),
      audit.chat_template.empty() ? "" : fmt::format(" ({} template)", audit.chat_template),
      audit.examples == 0
          ? ""
          : fmt::format(", {} examples ({} of them desirable)", audit.examples, audit.desirable),
      audit.documents, audit.tokens, audit.trained_tokens, audit.longest, audit.truncated,
      audit.cut_tokens);
  if (audit.empty > 0) text += fmt::format("; {} texts without a token left out", audit.empty);
  if (const std::string unwritten = audit.unwritten.text(); !unwritten.empty())
    text += "; " + unwritten;
  if (const std::string fields = audit.unused.list(); !fields.empty())
    text += fmt::format("; fields that are not used: {}", fields);
  if (const std::string unmet = text::unmet_text(audit.unmet); !unmet.empty()) text += "; " + unmet;
  if (!audit.bad_told.empty()) text += "\n" + audit.bad_told;
  return text;
}

}  // namespace snug::train
