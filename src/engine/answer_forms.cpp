#include "engine/answer_forms.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "text/grammar/pattern_grammar.h"
#include "text/grammar/schema_grammar.h"

namespace snug::engine {

AnswerForms::Form AnswerForms::form(const std::string& name,
                                    const std::function<text::ByteGrammar()>& grammar_of) {
  const auto at = std::ranges::find(known_, name, &std::pair<std::string, Form>::first);
  if (at != known_.end()) {
    std::rotate(known_.begin(), at, at + 1);
    return known_.front().second;
  }
  try {
    text::ByteGrammar grammar = grammar_of();
    if (tokens_ == nullptr) tokens_ = std::make_shared<const text::TokenTrie>(tokenizer_);
    known_.emplace_front(name, std::make_shared<text::TokenGrammar>(std::move(grammar), tokens_));
  } catch (const std::invalid_argument& error) {
    throw base::UserError(error.what());
  }
  if (known_.size() > kMaxForms) known_.pop_back();
  return known_.front().second;
}

AnswerForms::Form AnswerForms::regex(const std::string& expression) {
  return form("regex " + expression, [&] { return text::regex_grammar(expression); });
}

AnswerForms::Form AnswerForms::json_schema(const std::string& schema, const std::string& name) {
  return form("json_schema " + schema, [&] { return text::schema_text_grammar(schema, name); });
}

}  // namespace snug::engine
