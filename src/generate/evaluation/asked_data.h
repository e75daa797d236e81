// Questions of data with their answers (questions.h): how often a model's greedy answer is exactly
// the expected one.
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
  };
  std::vector<engine::Question> questions;
  std::vector<Answer> answers;  // one for each question
  Figure exact_match{};
  RunOfModel run{};

  int64_t correct() const;
};

// Asks every record of recipe.data, `batch` records in parallel. Answers are right that equal the
// expected text apart from white space at both ends. Throws UserError.
AskedData asked_data(const ModelToAsk& model);

}  // namespace snug::generate
