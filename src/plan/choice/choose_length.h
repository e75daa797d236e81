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
#include <functional>
#include <string>

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

// The documents of a job, read with rows of most_tokens.
struct DocumentLengths {
  base::PerStream<int64_t> longest = 0;  // tokens of a row that holds any one document
  int64_t documents = 0;
  // The fewest tokens of a row, of a decoder, that leave something of each answer.
  std::function<int64_t()> least = [] { return int64_t{2}; };
  RowShape shape;             // at any length
  int64_t reading_bytes = 0;  // DataFacts::reading_bytes
  // How many documents have more tokens, in a stream.
  std::function<int64_t(int64_t)> longer_than;
  // Makes rows of spec.row_tokens with spec.row_segments documents at most. Those that were made
  // before are no more.
  std::function<RowsOfLength(const TrainingSpec&)> rows;
};

// The recipe, which says auto, with rows of `times` the longest document.
formats::Recipe with_length(const formats::Recipe& recipe, const base::PerStream<int64_t>& longest,
                            int64_t times);

// The tokens of the stream whose rows max_length is about: the encoder's, where there is one.
int64_t of_max_length(const base::PerStream<int64_t>& tokens);

// "700 tokens", "700 tokens of prompts and 20 of answers".
std::string length_text(const base::PerStream<int64_t>& tokens);

// The recipe with a number in place of auto; as it is where it has one. The rows of a micro-batch
// stay open where they are. inputs.data is not used. Throws UserError as assemble_training does,
// and where no length that cuts nothing fits, with kDoesNotFitExitCode: it names the longest one
// that fits, and how many documents that would cut.
formats::Recipe with_chosen_length(const TrainingInputs& inputs, const DocumentLengths& documents,
                                   const MeasureProcess& measure = {});

}  // namespace snug::plan
