// The documents of a run, read and tokenized, and the rows made of them.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/agreement.h"
#include "engine/questions/question.h"
#include "formats/folder/trained_chat.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/choice/choose_length.h"
#include "plan/job/assembly.h"
#include "text/row/dataset.h"
#include "text/row/row_source.h"
#include "text/tokenizer/tokenizer.h"
#include "train/rewards/prompt_reader.h"
#include "train/rewards/reward_functions.h"

namespace snug::train {

// Owns a dataset and its rows; does not move, since rows point into documents.
struct DataSource {
  DataSource(text::Dataset loaded, const text::RowOptions& options)
      : dataset(std::move(loaded)), rows(dataset.documents, options) {}
  text::Dataset dataset;
  text::RowSource rows;
  // The log-probability of each document by the model as training begins, where it is kept.
  std::vector<float> reference{};
  // Takes the memory for them.
  void keep_reference();
  // Rows of which one epoch has every document once. Where a reference is kept and an epoch of
  // `rows` takes some documents more often than others, they are rows of their own.
  text::RowSource& rows_of_all() { return every_document ? *every_document : rows; }
  void set_rows(const base::PerStream<int32_t>& max_length, int32_t max_segments);
  int64_t host_bytes() const;

  std::optional<text::RowSource> every_document{};
};

// A set of records that a run evaluates.
struct EvaluationSet {
  std::string name;  // in its metrics; other than those of the other sets (evaluation_names.h)
  std::unique_ptr<DataSource> source;
  std::vector<engine::Question> questions{};  // whose answers are generated (eval_generate)
  // Of an objective that makes answers: each is a document of `source`, of the same number.
  std::vector<RewardedPrompt> prompts{};
};

struct RunData {
  std::unique_ptr<DataSource> training;
  std::vector<EvaluationSet> evaluation;  // empty without eval_data
  // Of an objective that makes answers: each is a document of `training`, of the same number.
  std::vector<RewardedPrompt> prompts{};
  std::unique_ptr<RewardFunctions> rewards{};  // of the answers to them
  formats::TrainedChat chat;                   // what they say of the folder that is saved
  // The model's, where reading needed it: for audit.h, after which it can go unless there are
  // questions.
  std::optional<text::Tokenizer> tokenizer{};
  // What the process held at most while the data were read, as far as that can be known before: see
  // text/row/dataset.h, and the index of their documents.
  int64_t reading_bytes = 0;
  int64_t host_bytes() const;
  plan::JobDocuments documents{};  // of all
  // That of training, then those of the evaluation sets.
  std::vector<DataSource*> sources() const;
  // Of the documents of each evaluation set, for ranks to compare.
  std::vector<comm::NamedValue> evaluation_fingerprints() const;
  // All that a plan asks of them; reads the first rows.
  plan::DataFacts facts() const;
  // Makes the rows anew: spec.row_tokens long, of spec.row_segments documents at most.
  void make_rows(const plan::TrainingSpec& spec);
};

// Reads recipe.data and recipe.eval_data, and the questions of the latter that eval_generate asks
// for, with the model's tokenizer unless their records are
// tokens already. Throws UserError, also when the tokenizer or a record has ids that the model has
// no row for, and, before they are read, when host_memory is less than that may take. Where the
// recipe leaves max_length open, rows have plan::most_tokens until with_length_of_data makes them
// others.
RunData load_data(const formats::Recipe& recipe, const models::ModelSource& model,
                  const program::Target& target);

// For max_length=auto: how many longest documents a row is best long (plan/choice/choose_length.h).
// Makes rows of the data of each length that is tried.
int64_t best_times(const plan::TrainingInputs& inputs, RunData& data,
                   const plan::MeasureProcess& measure = {});
// The recipe with rows of `times` the longest document in place of max_length=auto; makes the rows
// of the data so, and tells of them, with `why` after it.
formats::Recipe with_length_of_data(const plan::TrainingInputs& inputs, RunData& data,
                                    int64_t times, std::string_view why = "");

// Whether load_data could tokenize the recipe's files: false for a built-in shape with data of
// another form than tokens. Throws UserError for files that are not there or whose first record is
// broken.
bool has_tokenizer_for(const formats::Recipe& recipe, const models::ModelSource& model);

}  // namespace snug::train
