// `snug evaluate`: figures of a model on tasks, on questions with their answers, or on texts.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::generate {

// With recipe.tasks, runs the tasks of that file (task_file.h). Without, asks every record of
// recipe.data (asked_data.h), or computes the perplexity of its texts (text_perplexity.h), where
// stride is given or they are plain text. Prints each figure with its standard error; with `json`,
// one object: of questions exact_match (0 to 1), correct, total, metrics (of eval_metrics, with
// their standard errors) and answers, a list of {question, answer, expected, correct, scores}; of
// texts perplexity, loss, tokens; of tasks results, documents and samples by task, with the
// harness's names of figures; of all seconds, planned_bytes and device.peak_bytes. Returns 0.
// Throws UserError; with exit code 3 when the job does not fit the budget.
int evaluate(const formats::Recipe& recipe, bool json);

}  // namespace snug::generate
