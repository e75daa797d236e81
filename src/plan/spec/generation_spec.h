// What a training job generates: eval_generate answers of each evaluation set, or the answers that
// it learns from.
#pragma once

#include <cstdint>
#include <optional>

#include "base/token_streams.h"
#include "formats/recipe/recipe.h"
#include "plan/job/job.h"
#include "plan/spec/job_documents.h"

namespace snug::plan {

// Throws UserError for a key of answers on the command line where evaluations generate none.
void check_answer_keys(const formats::Recipe& recipe);

// How many records each evaluation asks at most: eval_generate of each set, as far as it has as
// many documents. Without data there is one set.
int64_t asked_records(const formats::Recipe& recipe, const JobDocuments& documents);

// The tokens of the longest prompt that is asked: those of the longest evaluation document, in
// which a prompt stands before its answer. Without data, those of a row.
int64_t asked_prompt_tokens(const JobDocuments& documents,
                            const base::PerStream<int64_t>& row_tokens);

// The sizes of the programs that generate; nothing where the recipe asks for no answers. `spec` has
// everything else of the job. Throws UserError, with the recipe's location, where a model has no
// positions left for an answer, for several ranks, and for keys of answers that nobody asks for.
std::optional<InferenceShape> generation_shape(const formats::Recipe& recipe,
                                               const TrainingSpec& spec,
                                               const JobDocuments& documents);

}  // namespace snug::plan
