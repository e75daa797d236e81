// A file of instructions with their answers, as prompts to ask a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

struct Question {
  std::string shown;         // what is asked, without the form around it
  std::vector<int32_t> ids;  // the prompt as training renders it
  std::string expected;
  int line = 0;
  bool is_conversation = false;
};

// Reads recipe.data: records of the forms that have an answer (alpaca, prompt_completion, and
// conversations, whose last text is the answer). `has_encoder`: prompts are an encoder's, and there
// are no conversations. Says which fields are not used, and what a chat template leaves out. Throws
// UserError with all records that cannot be asked, or leaves them out, as recipe.on_bad_record has
// it.
std::vector<Question> read_questions(const formats::Recipe& recipe,
                                     const text::Tokenizer& tokenizer, bool has_encoder = false);

}  // namespace snug::generate
