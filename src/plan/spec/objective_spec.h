// What a recipe's objective requires of the rest of a job.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/token_streams.h"
#include "formats/recipe/recipe.h"
#include "plan/job/job.h"

namespace snug::plan {

// The tokens per row. If an objective's documents form groups, there is room for max_length tokens
// of each document. For an encoder-decoder, max_length is the encoder's length.
base::PerStream<int64_t> row_tokens(const formats::Recipe& recipe, bool has_encoder);

// The capacity of documents per row before data are known: enough for documents of 16 tokens, or
// one group where each row holds one group.
int64_t row_segments(const formats::Recipe& recipe);

// The number of examples among which answers are exchanged (text/record/mismatched_answers.h), if
// the objective needs that: the rows of a micro-batch; 0: all data, where rows are packed.
int64_t mismatch_batch(const formats::Recipe& recipe);

// Throws UserError, with the recipe's location, for what cannot be combined with the objective, and
// for keys of an objective that the recipe does not have. Reads the spec's model, method and frozen
// weights.
methods::ObjectiveOptions objective_options(const formats::Recipe& recipe,
                                            const TrainingSpec& spec);

// Whether only objectives that make answers use the key.
bool is_key_of_rewards(std::string_view key);

// Sets defaults that depend on the objective. Where the command line chose the objective over the
// file's, resets the keys that the objective does not use. `max_position`: the model's positions.
void settle_objective(formats::Recipe& recipe, int64_t max_position);

}  // namespace snug::plan
