// What an answer is held to, as a grammar of all of its text: a thought first where the model may
// think, then JSON, a text that an expression matches, or calls of tools in the model's own form.
// Functions throw std::invalid_argument that names what is wrong or not built, and where.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer/answer_reader.h"
#include "text/grammar/byte_grammar.h"

namespace snug::text {

// Where an answer begins, and the thought that it may have before what is held.
struct AnswerBeginning {
  const ThoughtMarks* thought = nullptr;  // null: none
  bool begins_in_thought = false;         // the thought is open, and has to be closed
};

struct CalledFunction {
  std::string name{};
  // The schema of the arguments; null: any object.
  nlohmann::ordered_json parameters = nullptr;
};

struct HeldCalls {
  const CallFormat* format = nullptr;  // never null
  std::vector<CalledFunction> functions{};
  bool is_optional = false;  // a text may come before the calls, or in their place
  bool is_single = false;    // one call at most
};

ByteGrammar answer_schema_grammar(const AnswerBeginning& beginning,
                                  const nlohmann::ordered_json& schema);
ByteGrammar answer_regex_grammar(const AnswerBeginning& beginning, std::string_view expression);
ByteGrammar answer_calls_grammar(const AnswerBeginning& beginning, const HeldCalls& calls);

}  // namespace snug::text
