// Questions of data with their answers (questions.h): how often a model's greedy answer is exactly
// the expected one, and what it is worth by eval_metrics.
#pragma once

#include <string>
#include <vector>

#include "generate/evaluation/figures.h"
#include "generate/evaluation/run_of_model.h"
#include "generate/questions.h"

namespace snug::generate {

struct AskedData {
  struct Answer {
    std::string text;
    bool is_correct = false;
    std::vector<double> scores{};  // by the metrics, in the order of `figures`
  };
  std::vector<engine::Question> questions;
  std::vector<Answer> answers;  // one for each question
  Figure exact_match{};
  std::vector<Figure> figures{};  // of eval_metrics
  RunOfModel run{};

  int64_t correct() const;
};

// Asks every record of recipe.data, `batch` records in parallel. Answers are right that equal the
// expected text apart from white space at both ends. Throws UserError, before anything is asked
// also for an expected text that a metric cannot compare with.
AskedData asked_data(const ModelToAsk& model);

}  // namespace snug::generate
