// The forms that answers are held to, over the vocabulary of one tokenizer. A form that was asked
// for before is found again, with the masks that are known by then. Not thread-safe; all engines
// that use its forms run in the same thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "text/grammar/token_mask.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::engine {

class AnswerForms {
 public:
  using Form = std::shared_ptr<text::TokenGrammar>;

  // The tokenizer must outlive the object, not its forms.
  explicit AnswerForms(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Answers that a regular expression in Python's syntax matches as a whole. Throws UserError that
  // says what in it is wrong or not built, and where.
  Form regex(const std::string& expression);
  // Answers that are JSON and valid under a schema (text/grammar/schema_grammar.h), which `name`
  // names in messages. Throws UserError for what is wrong with it, and for what is not built.
  Form json_schema(const std::string& schema, const std::string& name);
  // Answers of a grammar that is made where it is not known yet by this name. Throws UserError in
  // the place of std::invalid_argument.
  Form form(const std::string& name, const std::function<text::ByteGrammar()>& grammar_of);

 private:
  // Requests of a file often ask for a few forms in turn.
  static constexpr size_t kMaxForms = 16;

  const text::Tokenizer& tokenizer_;
  std::shared_ptr<const text::TokenTrie> tokens_{};   // when the first form needs them
  std::deque<std::pair<std::string, Form>> known_{};  // the last one that was asked for first
};

}  // namespace snug::engine
