// The marks between which a model thinks before it answers. They are read from what the model's
// folder has, its chat template and its tokenizer, and never from a model's name. Pure functions;
// any thread.
#pragma once

#include <cstdint>
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

// Where the answer to a prompt begins, by what its template put at its end.
enum class ThoughtPlace : uint8_t { before, within, after };
ThoughtPlace thought_place(std::string_view prompt, const ThoughtMarks& marks);

}  // namespace snug::text
