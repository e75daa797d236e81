// The forms that answers are held to, over the vocabulary of one tokenizer. A form that was asked
// for before is found again, with the masks that are known by then. Not thread-safe; all engines
// that use its forms run in the same thread.
#pragma once

#include <deque>
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

 private:
  // Requests of a file often ask for a few forms in turn.
  static constexpr size_t kMaxForms = 16;
  template <typename Grammar>
  Form form(const std::string& name, Grammar grammar_of);

  const text::Tokenizer& tokenizer_;
  std::shared_ptr<const text::TokenTrie> tokens_{};   // when the first form needs them
  std::deque<std::pair<std::string, Form>> known_{};  // the last one that was asked for first
};

}  // namespace snug::engine
