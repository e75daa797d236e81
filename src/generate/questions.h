// Reads a file of instructions with their answers as prompts to ask a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/recipe/recipe.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

struct Question {
  std::string shown;         // the question, without the prompt's boilerplate
  std::vector<int32_t> ids;  // the prompt as training renders it
  std::string expected;
  std::string file{};  // and its record's line
  int line = 0;
  bool is_conversation = false;
};

// Reads recipe.data: records of the forms that have an answer (alpaca, prompt_completion, and
// conversations, whose last text is the answer). `has_encoder`: prompts are an encoder's input, and
// conversations are not allowed. Reports fields that are not used, and messages that a chat
// template leaves out. Records that cannot be asked are left out or all named in a UserError, as
// recipe.on_bad_record says.
std::vector<Question> read_questions(const formats::Recipe& recipe,
                                     const text::Tokenizer& tokenizer, bool has_encoder = false);

}  // namespace snug::generate
