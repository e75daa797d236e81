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
#include <functional>
#include <string>

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

// The documents of a job, read with rows of most_tokens.
struct DocumentLengths {
  base::PerStream<int64_t> longest = 0;  // the length of a row that holds any one document
  int64_t documents = 0;
  // The shortest row of a decoder that keeps a part of each answer.
  std::function<int64_t()> least = [] { return int64_t{2}; };
  RowShape shape;             // valid for any length of rows
  int64_t reading_bytes = 0;  // DataFacts::reading_bytes
  // How many documents of a stream have more than this number of tokens.
  std::function<int64_t(int64_t)> longer_than;
  // Makes rows of spec.row_tokens with at most spec.row_segments documents. Rows made by an earlier
  // call become invalid.
  std::function<RowsOfLength(const TrainingSpec&)> rows;
};

// The recipe with max_length=auto replaced by `times` the longest document.
formats::Recipe with_length(const formats::Recipe& recipe, const base::PerStream<int64_t>& longest,
                            int64_t times);

// The tokens of the stream to which max_length refers: the encoder's, if there is one.
int64_t of_max_length(const base::PerStream<int64_t>& tokens);

// Text such as "700 tokens" or "700 tokens of prompts and 20 of answers".
std::string length_text(const base::PerStream<int64_t>& tokens);

// The recipe with a number in place of max_length=auto; unchanged if it has a number. The rows of a
// micro-batch stay open where they are. inputs.data is not used. Throws UserError as
// assemble_training does, and with kDoesNotFitExitCode where no length fits that cuts nothing: the
// message names the longest length that fits, and the number of documents that it would cut.
formats::Recipe with_chosen_length(const TrainingInputs& inputs, const DocumentLengths& documents,
                                   const MeasureProcess& measure = {});

}  // namespace snug::plan
