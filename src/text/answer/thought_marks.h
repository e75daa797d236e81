// The marks between which a model thinks before it answers. They are read from what the model's
// folder has, its chat template and its tokenizer, and never from a model's name. Pure functions;
// any thread.
#pragma once

#include <string_view>

#include "text/tokenizer/tokenizer.h"

namespace snug::text {

struct ThoughtMarks {
  std::string_view open;
  std::string_view close;
};

// Those that the template writes or looks for, or that are tokens of the tokenizer; null: the model
// has none that are known. `source`: the template's own text.
const ThoughtMarks* find_thought_marks(std::string_view source, const Tokenizer& tokenizer);

// Whether a prompt ends within a thought, because its template opens one.
bool ends_in_thought(std::string_view prompt, const ThoughtMarks& marks);

}  // namespace snug::text
