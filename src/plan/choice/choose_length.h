// max_length=auto: rows are as long as the longest document, so that nothing is cut. Where
// documents are packed, rows may be a multiple of that length, whichever trains on the most tokens
// of documents per second according to the plan. With an encoder, rows of prompts and rows of
// answers (max_target_length) are both that many times as long as their own longest document.
//
// A step keeps its capacity in tokens: rows that are `times` as long are `times` fewer. So `times`
// must divide gradient_accumulation_steps, which is divided by it, as is train_batch_size. The rows
// of a micro-batch are the recipe's or, with auto, the fastest number for each length.
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

// The limit of document lengths: the model's positions, and kMaxAutoLength. Reading a record takes
// 5 bytes per token, in vectors that grow by doubling, which makes 10 MiB of text::kReadingBytes
// for a record of this length.
inline constexpr int64_t kMaxAutoLength = int64_t{1} << 20;
int64_t most_tokens(const models::ModelConfig& model);

// The recipe with which data are read: where the length is open, rows are most_tokens long, and the
// number of rows in a micro-batch is open too.
formats::Recipe with_open_length(const formats::Recipe& recipe, const models::ModelConfig& model);

// Rows of one length, made from the documents.
struct RowsOfLength {
  DataFacts facts;
  double tokens = 0;  // tokens of documents in a row, averaged over an epoch
};

// The recipe, which says auto, with rows of `times` the longest document.
formats::Recipe with_length(const formats::Recipe& recipe, const base::PerStream<int64_t>& longest,
                            int64_t times);

// The tokens of the stream to which max_length refers: the encoder's, if there is one.
int64_t of_max_length(const base::PerStream<int64_t>& tokens);

// Text such as "700 tokens" or "700 tokens of prompts and 20 of answers".
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
