#include "train/data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/console.h"
#include "base/error.h"
#include "plan/choice/choose_rows.h"
#include "plan/choice/fit.h"
#include "plan/job/rank_grid.h"
#include "plan/spec/data_keys.h"
#include "plan/spec/generation_spec.h"
#include "plan/spec/objective_spec.h"
#include "plan/spec/rollout_spec.h"
#include "runtime/process/process_memory.h"
#include "text/record/bad_records.h"
#include "train/asked_questions.h"
#include "train/data_sources.h"
#include "train/evaluation_names.h"
#include "train/lazy_tokenizer.h"
#include "train/rewards/prompt_documents.h"
#include "train/row_bounds.h"
#include "train/trained_chat.h"

namespace snug::train {
namespace {

base::PerStream<int32_t> as_lengths(const base::PerStream<int64_t>& row_tokens) {
  return row_tokens.map([](int64_t tokens) { return static_cast<int32_t>(tokens); });
}

// The names of the first files.
std::string some_of(const std::vector<std::string>& files) {
  constexpr size_t kTold = 4;
  const size_t told = std::min(files.size(), kTold);
  return fmt::format("{}{}", fmt::join(files.begin(), files.begin() + std::ptrdiff_t(told), ", "),
                     told < files.size() ? ", ..." : "");
}

// All that is read: what trains, and the evaluation sets.
struct Sources {
  std::vector<text::RecordSource> training;
  std::vector<EvaluationSources> evaluation;

  Sources(const formats::Recipe& recipe, const text::DatasetOptions& options)
      : training(training_sources(recipe, options)),
        evaluation(evaluation_sources(recipe, options)) {}

  void tell() const {
    const auto tell_of = [](const std::vector<text::RecordSource>& all) {
      for (const text::RecordSource& source : all) {
        if (source.files.size() > 1)
          base::say("{}: {} files: {}", source.name, source.files.size(), some_of(source.files));
        for (const std::string& note : source.notes) base::say("{}: {}", source.name, note);
      }
    };
    tell_of(training);
    for (const EvaluationSources& set : evaluation) tell_of(set.sources);
  }

  template <typename Visit>
  void each_file(const Visit& visit) const {
    const auto visit_all = [&](const std::vector<text::RecordSource>& sources) {
      for (const text::RecordSource& source : sources)
        for (const std::string& file : source.files) visit(source, file);
    };
    visit_all(training);
    for (const EvaluationSources& set : evaluation) visit_all(set.sources);
  }
};

// Seen from the first records.
bool needs_tokenizer(const Sources& sources) {
  bool is_needed = false;
  sources.each_file([&](const text::RecordSource& source, const std::string& file) {
    const text::DatasetOptions& options = source.options;
    const text::RecordRules rules{
        .form = options.form,
        .has_encoder = options.encoder_length > 0,
        .ignored = options.ignored_fields,
        .mapping = options.mapping.is_empty() ? nullptr : &options.mapping,
        .learning = options.learning};
    is_needed = is_needed || text::needs_tokenizer(file, rules);
  });
  return is_needed;
}

// What reading the files may hold beyond what the process holds before: one is read at a time.
int64_t reading_bytes_of(const formats::Recipe& recipe, const Sources& sources) {
  int64_t bytes = 0;
  int64_t all_bytes = 0;
  sources.each_file([&](const text::RecordSource&, const std::string& file) {
    bytes = std::max(bytes, text::reading_bytes(file));
    all_bytes += static_cast<int64_t>(std::filesystem::file_size(file));
  });
  if (recipe.val_set_size < 1) return bytes;
  // A number for each record that is held out; a record has a byte at least.
  const auto records = std::min<int64_t>(static_cast<int64_t>(recipe.val_set_size), all_bytes);
  return bytes + records * text::HeldOutCount::kBytesOfRecord;
}

// What was read, of which each evaluation set has a name.
struct Loaded {
  text::Datasets data;
  std::vector<std::pair<std::string, text::Dataset>> evaluation{};
  std::optional<text::HeldOut> held_out{};  // of the last evaluation set, where it is of the data
  // Of each evaluation set, where its records are prompts.
  std::vector<std::vector<RewardedPrompt>> evaluated_prompts{};
};

// Makes an evaluation set of the records that are held out.
void add_held_out(const formats::Recipe& recipe, Loaded& loaded) {
  if (loaded.data.held_out.documents.size() == 0)
    recipe.fail("val_set_size",
                fmt::format("is {}, which takes none of the {} records of the data; give a larger "
                            "share, or a number of records",
                            recipe.val_set_size, loaded.data.training.audit.records));
  if (loaded.data.training.documents.size() == 0)
    recipe.fail("val_set_size",
                fmt::format("is {}, which takes all of the {} records of the data, "
                            "so that none is left to train on",
                            recipe.val_set_size, loaded.data.held_out.audit.records));
  loaded.evaluation.emplace_back(kHeldOutName, std::move(loaded.data.held_out));
}

// All files, so that one run tells of the bad records of all.
Loaded load_all(const formats::Recipe& recipe, Sources& sources,
                const text::TokenizerOpener& open) {
  Loaded loaded;
  std::string bad;
  const auto try_to = [&](const auto& load) {
    try {
      load();
    } catch (const text::BadRecordsError& error) {
      bad += (bad.empty() ? "" : ";\n") + std::string(error.what());
    }
  };
  loaded.held_out = held_out_records(recipe, sources.training, open);
  try_to([&] { loaded.data = text::load_datasets(sources.training, open, loaded.held_out); });
  for (const EvaluationSources& set : sources.evaluation)
    try_to([&] {
      loaded.evaluation.emplace_back(set.name, text::load_datasets(set.sources, open).training);
    });
  if (!bad.empty()) throw base::UserError(bad);
  if (loaded.held_out) add_held_out(recipe, loaded);
  return loaded;
}

// Prompts in place of documents, of an objective that makes answers.
class PromptLoader {
 public:
  PromptLoader(const formats::Recipe& recipe, const text::Tokenizer& tokenizer)
      : recipe_(recipe),
        tokenizer_(tokenizer),
        rewards_(std::make_unique<RewardFunctions>(recipe)),
        most_tokens_(plan::most_prompt_tokens(recipe)) {}

  Loaded load(const Sources& sources, RunData& data) {
    Loaded loaded;
    loaded.held_out = held_out_records(recipe_, sources.training,
                                       [&]() -> const text::Tokenizer& { return tokenizer_; });
    const text::HeldOut* const held_out = loaded.held_out ? &*loaded.held_out : nullptr;
    loaded.data.training =
        read(sources.training, {.most_tokens = most_tokens_, .held_out = held_out}, data.prompts);
    for (const EvaluationSources& set : sources.evaluation)
      add_set(set.name,
              read(set.sources, {.key = "eval_data", .most_tokens = most_tokens_},
                   loaded.evaluated_prompts.emplace_back()),
              loaded);
    if (held_out != nullptr)
      add_set(std::string(kHeldOutName),
              read_as_one(kHeldOutName, sources.training,
                          {.key = "val_set_size",
                           .most_tokens = most_tokens_,
                           .held_out = held_out,
                           .takes_held_out = true},
                          loaded.evaluated_prompts.emplace_back()),
              loaded);
    data.rewards = std::move(rewards_);
    return loaded;
  }

 private:
  static void add_set(const std::string& name, text::Dataset dataset, Loaded& loaded) {
    loaded.evaluation.emplace_back(name, std::move(dataset));
  }

  // The documents of these prompts, which are looked at before the first answer is made.
  text::Dataset taken(PromptDocuments documents, std::vector<RewardedPrompt>& prompts) const {
    prompts = documents.take_prompts();
    for (const RewardedPrompt& prompt : prompts) rewards_->check(prompt.record);
    return documents.take();
  }

  text::Dataset read(const std::vector<text::RecordSource>& sources, const AskedPrompts& asked,
                     std::vector<RewardedPrompt>& prompts) const {
    PromptDocuments documents;
    for (const text::RecordSource& source : sources)
      documents.add(source.name, rewarded_prompts(recipe_, {source}, asked, tokenizer_));
    return taken(std::move(documents), prompts);
  }

  text::Dataset read_as_one(std::string_view name, const std::vector<text::RecordSource>& sources,
                            const AskedPrompts& asked, std::vector<RewardedPrompt>& prompts) const {
    PromptDocuments documents;
    documents.add(std::string(name), rewarded_prompts(recipe_, sources, asked, tokenizer_));
    return taken(std::move(documents), prompts);
  }

  const formats::Recipe& recipe_;
  const text::Tokenizer& tokenizer_;
  std::unique_ptr<RewardFunctions> rewards_;
  int64_t most_tokens_;
};

plan::JobDocuments documents_of(const Loaded& loaded, int64_t group) {
  plan::JobDocuments documents{.files = {}, .group = group};
  const auto add = [&](const text::DocumentStore& store) {
    documents.files.push_back(store.lengths());
    documents.least = std::max<int64_t>(documents.least, store.least());
  };
  add(loaded.data.training.documents);
  for (const auto& [name, dataset] : loaded.evaluation) add(dataset.documents);
  return documents;
}

// The mean tokens of documents in a row of the first epoch.
double mean_row_tokens(DataSource& source) {
  return static_cast<double>(source.rows.first_epoch_tokens()) /
         static_cast<double>(source.rows.rows_until(1));
}

// What no length that is chosen could hold.
std::string cut_text(const RunData& data, const models::ModelConfig& model) {
  int64_t cut = data.training->dataset.audit.truncated;
  for (const EvaluationSet& set : data.evaluation) cut += set.source->dataset.audit.truncated;
  if (cut == 0) return "";
  return fmt::format(
      "; {} longer document{} cut: {} tokens are the most that {}", cut, cut == 1 ? " is" : "s are",
      plan::most_tokens(model),
      model.max_position <= plan::kMaxAutoLength ? "the model has positions for" : "auto takes");
}

// Names are unique and stand for themselves in metrics.
void add_evaluation(const formats::Recipe& recipe, Loaded& loaded, const text::RowOptions& rows,
                    RunData& data) {
  std::vector<std::string> wanted;
  for (const auto& [name, dataset] : loaded.evaluation) wanted.push_back(name);
  const std::vector<std::string> measures = evaluation_measures(
      recipe, data.rewards ? data.rewards->names() : std::vector<std::string>());
  const std::vector<std::string> names =
      evaluation_names(wanted, std::vector<std::string_view>(measures.begin(), measures.end()));
  for (size_t i = 0; i < names.size(); ++i)
    data.evaluation.push_back(
        {.name = names[i],
         .source = std::make_unique<DataSource>(std::move(loaded.evaluation[i].second), rows)});
  for (size_t i = 0; i < loaded.evaluated_prompts.size(); ++i)
    data.evaluation[i].prompts = std::move(loaded.evaluated_prompts[i]);
}

// Reads the questions of each evaluation set.
void add_questions(const formats::Recipe& recipe, const Sources& sources, const Loaded& loaded,
                   const models::ModelConfig& model, LazyTokenizer& tokenizer, RunData& data) {
  if (recipe.eval_generate == 0) return;
  const int64_t prompt_tokens =
      plan::asked_prompt_tokens(data.documents, plan::row_tokens(recipe, model.has_encoder()));
  for (size_t set = 0; set < data.evaluation.size(); ++set) {
    const bool is_of_file = set < sources.evaluation.size();
    AskedSet asked{.sources = is_of_file ? sources.evaluation[set].sources : sources.training,
                   .prompt_tokens = prompt_tokens};
    if (!is_of_file) asked.held_out = loaded.held_out;
    data.evaluation[set].questions = asked_questions(recipe, asked, model, tokenizer.open());
  }
}

}  // namespace

void DataSource::keep_reference() {
  reference.resize(static_cast<size_t>(dataset.documents.size()));
  if (rows.options().parts.empty()) return;
  text::RowOptions options = rows.options();
  options.parts.clear();
  options.shuffle = false;
  every_document.emplace(dataset.documents, options);
}

void DataSource::set_rows(const base::PerStream<int32_t>& max_length, int32_t max_segments) {
  rows.set_rows(max_length, max_segments);
  if (every_document) every_document->set_rows(max_length, max_segments);
}

int64_t DataSource::host_bytes() const {
  return dataset.documents.host_bytes() + rows.host_bytes() +
         (every_document ? every_document->host_bytes() : 0) +
         static_cast<int64_t>(reference.size() * sizeof(float));
}

std::vector<DataSource*> RunData::sources() const {
  std::vector<DataSource*> sources{training.get()};
  for (const EvaluationSet& set : evaluation) sources.push_back(set.source.get());
  return sources;
}

int64_t RunData::host_bytes() const {
  int64_t bytes = 0;
  for (const DataSource* source : sources()) bytes += source->host_bytes();
  for (const EvaluationSet& set : evaluation) bytes += bytes_of_prompts(set.prompts);
  return bytes + bytes_of_prompts(prompts);
}

std::vector<comm::NamedValue> RunData::evaluation_fingerprints() const {
  std::vector<comm::NamedValue> values;
  for (const EvaluationSet& set : evaluation)
    values.push_back({evaluation.size() == 1 ? "the evaluation data"
                                             : fmt::format("the evaluation data {}", set.name),
                      set.source->dataset.documents.fingerprint()});
  return values;
}

plan::DataFacts RunData::facts() const {
  plan::DataFacts facts{.documents = documents,
                        .expected = expected_bounds(training->rows),
                        .reading_bytes = reading_bytes,
                        .rows = {.training = training->rows_of_all().rows_until(1)}};
  for (const EvaluationSet& set : evaluation)
    facts.rows.evaluation.push_back(set.source->rows.rows_until(1));
  return facts;
}

void RunData::make_rows(const plan::TrainingSpec& spec) {
  for (DataSource* source : sources())
    source->set_rows(as_lengths(spec.row_tokens), static_cast<int32_t>(spec.row_segments));
}

int64_t best_times(const plan::TrainingInputs& inputs, RunData& data,
                   const plan::MeasureProcess& measure) {
  if (!data.prompts.empty()) return 1;
  plan::LengthChoice choice(inputs, data.documents, data.reading_bytes, measure);
  while (const auto spec = choice.next()) {
    data.make_rows(*spec);
    choice.take({data.facts(), mean_row_tokens(*data.training)});
  }
  return choice.best_times();
}

formats::Recipe with_length_of_data(const plan::TrainingInputs& inputs, RunData& data,
                                    int64_t times, std::string_view why) {
  if (!data.prompts.empty()) return with_length_of_prompts(inputs.recipe, data.prompts);
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
  if (!recipe.evaluates() && recipe.eval_steps > 0)
    recipe.fail("eval_steps",
                "asks for evaluations, but there is no eval_data (val_set_size takes "
                "it out of the data)");
  const base::PerStream<int64_t> row_tokens = plan::row_tokens(recipe, model.config.has_encoder());
  const text::DatasetOptions options = document_options(recipe, model.config);
  Sources sources(recipe, options);
  sources.tell();
  LazyTokenizer tokenizer(recipe, model);
  std::vector<formats::NewToken> added;
  if (!recipe.added_tokens.empty()) {
    added = new_tokens(tokenizer.open());
    tell_new_tokens(added, recipe);
  }
  // Before the bound is known, since what it takes to open one is no part of it.
  // Where there is none, reading tells of it, after what is wrong with the records before.
  if (needs_tokenizer(sources)) tokenizer.try_open();
  runtime::release_freed_memory();
  const int64_t reading =
      runtime::process_memory().resident_bytes + reading_bytes_of(recipe, sources);
  plan::require_room_to_read(recipe,
                             std::max(reading, runtime::process_memory().resident_peak_bytes));
  RunData data;
  const bool makes_answers = methods::objective_of(recipe.objective).makes_answers;
  if (makes_answers) recipe.require("rewards");
  Loaded loaded =
      makes_answers
          ? PromptLoader(recipe, tokenizer.open()).load(sources, data)
          : load_all(recipe, sources, [&]() -> const text::Tokenizer& { return tokenizer.open(); });
  const int64_t group = methods::objective_of(recipe.objective).group;
  std::vector<text::EpochPart> parts = epoch_parts(recipe, loaded.data.training, group);
  data.documents = documents_of(loaded, group);
  data.documents.times = text::most_times(parts);
  if (!makes_answers) data.documents.shape_rows(spec);
  // A prompt has a row of its own.
  const int64_t segments = makes_answers ? 1 : spec.row_segments;
  text::RowOptions rows{
      .max_length = as_lengths(makes_answers ? data.documents.longest() : row_tokens),
      .max_segments = static_cast<int32_t>(segments),
      .packing = recipe.packing && !makes_answers,
      .shuffle = recipe.shuffle,
      .seed = static_cast<uint64_t>(recipe.seed),
      .padding_id = tokenizer.padding_id(),
      .group = static_cast<int32_t>(group),
      .start_id = static_cast<int32_t>(model.config.decoder_start_id)};
  rows.parts = std::move(parts);
  data.training = std::make_unique<DataSource>(std::move(loaded.data.training), rows);
  rows.parts.clear();
  rows.shuffle = false;
  add_evaluation(recipe, loaded, rows, data);
  add_questions(recipe, sources, loaded, model.config, tokenizer, data);
  if (recipe.precompute_ref_log_probs)
    for (DataSource* source : data.sources()) source->keep_reference();
  data.reading_bytes = reading + data.host_bytes();
  data.tokenizer = tokenizer.take();
  data.chat = trained_chat(data.training->dataset.audit, model, recipe.adapter);
  data.chat.added_tokens = std::move(added);
  return data;
}

bool has_tokenizer_for(const formats::Recipe& recipe, const models::ModelSource& model) {
  text::DatasetOptions options;
  options.encoder_length = model.config.has_encoder() ? 1 : 0;
  return !model.folder.empty() || !needs_tokenizer({recipe, options});
}

}  // namespace snug::train
