// Questions of data with their answers: what a model is asked to see whether it gives the answers
// that its records hold. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/questions/evaluated_records.h"
#include "text/record/record_form.h"
#include "text/record/record_reader.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::engine {

struct Question {
  std::string shown;         // the question, without the prompt's boilerplate
  std::vector<int32_t> ids;  // the prompt as training renders it
  std::string expected;
  std::string file{};  // and its record's line
  int line = 0;
  bool is_conversation = false;
  std::string record{};  // for rewards: as it was read, JSON
};

// What of a file's records is asked, and how they are read.
struct QuestionFile {
  const std::string& path;
  const text::RecordRules& rules;    // without rules of learning
  const std::string& chat_template;  // as the recipe's key; empty: the model's own
  int64_t most_records = 0;          // from the file's first; 0: all
  int64_t most_questions = 0;        // the reader stops after so many; 0: all
  std::function<bool(const text::RawRecord&)> takes{};  // empty: every record is asked
  // The answer is rewarded: a record needs none (parse_asked_record), and is kept as it is.
  bool is_for_rewards = false;
};

// The questions of a file's records that have one answer: alpaca, prompt_completion, and
// conversations, whose last text is the answer. An encoder's input may not be a conversation. What
// cannot be asked is left out and counted in `records`. Reports messages that a chat template
// leaves out. Throws UserError for a file that cannot be read.
std::vector<Question> questions_in(const QuestionFile& file, const text::Tokenizer& tokenizer,
                                   EvaluatedRecords& records);

}  // namespace snug::engine
