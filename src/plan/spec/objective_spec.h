// What a recipe's objective asks of the rest of a job.
#pragma once

#include <cstdint>

#include "base/token_streams.h"
#include "formats/recipe/recipe.h"
#include "plan/job/job.h"

namespace snug::plan {

// The tokens of a row: an objective whose documents belong together has room for max_length of
// each. The max_length of an encoder-decoder is the encoder's.
base::PerStream<int64_t> row_tokens(const formats::Recipe& recipe, bool has_encoder);

// Documents of a row at most, before data are known: enough for documents of 16 tokens, one group
// where each row is one.
int64_t row_segments(const formats::Recipe& recipe);

// Examples of a batch whose answers are exchanged (text/record/mismatched_answers.h), where the
// objective needs that: rows of a micro-batch; 0: those of all data, where rows are packed.
int64_t mismatch_batch(const formats::Recipe& recipe);

// Throws UserError, with the recipe's location, for what the objective does not go with, and for
// keys of an objective that the recipe has not. Looks at the spec's model, method and frozen
// weights.
methods::ObjectiveOptions objective_options(const formats::Recipe& recipe,
                                            const TrainingSpec& spec);

// Sets defaults that depend on the objective, and puts back those of keys that it has no use for,
// where the command line chose it over a file that has them. The model has so many positions.
void settle_objective(formats::Recipe& recipe, int64_t max_position);

}  // namespace snug::plan
