// max_length=auto: rows as long as the longest document, so that nothing is cut, or a whole number
// of times as long where documents share rows, whichever trains on most tokens of documents in a
// second by the plan. With an encoder, rows of prompts and rows of answers (max_target_length) are
// both that many times as long as their own longest document.
//
// A step keeps its room for tokens: `times` as long, rows are `times` fewer, so that number divides
// gradient_accumulation_steps, and is divided out of it and of train_batch_size. The rows of a
// micro-batch are those of the recipe, or of auto those that are fastest at each length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/token_streams.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"

namespace snug::plan {

// Documents are at most as long as the model's positions, and as this: of a record of so many
// tokens reading holds 5 bytes each, in vectors that grew by doubling, which is 10 MiB of
// text::kReadingBytes.
inline constexpr int64_t kMaxAutoLength = int64_t{1} << 20;
int64_t most_tokens(const models::ModelConfig& model);

// What data are read with: where the length is open, rows of most_tokens, and how many of them a
// micro-batch has is open too.
formats::Recipe with_open_length(const formats::Recipe& recipe, const models::ModelConfig& model);

// Rows of one length made of the documents.
struct RowsOfLength {
  DataFacts facts;
  double tokens = 0;  // of documents in a row, in the mean of an epoch
};

// The recipe, which says auto, with rows of `times` the longest document.
formats::Recipe with_length(const formats::Recipe& recipe, const base::PerStream<int64_t>& longest,
                            int64_t times);

// The tokens of the stream whose rows max_length is about: the encoder's, where there is one.
int64_t of_max_length(const base::PerStream<int64_t>& tokens);

// "700 tokens", "700 tokens of prompts and 20 of answers".
std::string length_text(const base::PerStream<int64_t>& tokens);

// The choice of a length, in steps: rows of each length that next() gives are made of the data
// (train/data.h) and handed in, until there is none to try.
class LengthChoice {
 public:
  // The recipe of `inputs` says auto. inputs.data is not used; `reading_bytes` is
  // DataFacts::reading_bytes. What is given must outlive it.
  LengthChoice(const TrainingInputs& inputs, const JobDocuments& documents, int64_t reading_bytes,
               const MeasureProcess& measure);

  // The rows to make next: of spec.row_tokens with spec.row_segments documents at most. Nothing:
  // no others can be better. Throws UserError as training_spec does.
  std::optional<TrainingSpec> next() const;
  // Judges the rows of the length that next() gave. Throws UserError as assemble_training does.
  void take(const RowsOfLength& rows);
  // The best of them, in longest documents. Throws UserError where no length that cuts nothing
  // fits, with kDoesNotFitExitCode: it names the longest one that fits, and how many documents that
  // would cut.
  int64_t best_times() const;

 private:
  std::vector<int64_t> all_times() const;
  TrainingInputs with(const formats::Recipe& recipe, DataFacts facts) const;
  bool is_full_enough(const RowsOfLength& rows, int64_t times) const;
  base::PerStream<int64_t> cut_to(int64_t most) const;
  bool fits_with(int64_t most) const;
  int64_t longest_that_fits(int64_t least) const;
  [[noreturn]] void refuse() const;

  const TrainingInputs& inputs_;
  const JobDocuments& documents_;
  const int64_t reading_bytes_;
  const MeasureProcess& measure_;
  const base::PerStream<int64_t> longest_;  // rows that hold any one document
  std::vector<int64_t> left_;               // to try, as numbers of longest documents, falling
  int64_t best_times_ = 0;                  // 0: none fits
  double best_rate_ = 0;
};

}  // namespace snug::plan
