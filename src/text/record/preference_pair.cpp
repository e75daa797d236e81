#include "text/record/preference_pair.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/record/kept_end.h"

namespace snug::text {
namespace {

using Ids = std::vector<int32_t>;

Ids ids_of(const Tokenizer& tokenizer, std::string text, SpecialTokens special) {
  const std::array parts{Part{std::move(text), -1, false}};
  return tokenize_parts(tokenizer, parts, special).ids;
}

int64_t common_beginning(const Ids& a, const Ids& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

Document compared_document(Ids ids, int64_t prompt_tokens, const char* which) {
  const auto tokens = static_cast<int64_t>(ids.size());
  if (tokens < 2 || prompt_tokens >= tokens)
    base::throw_user_error("'{}' makes no token after the prompt; remove the record", which);
  Document document;
  document.trained.assign(ids.size(), 1);
  std::fill_n(document.trained.begin(), prompt_tokens, uint8_t{0});
  document.ids = std::move(ids);
  return document;
}

// Makes the ids of a record's prompt and of its answers, each with the prompt before it.
class AnswerIds {
 public:
  AnswerIds(const Record& record, const Tokenizer& tokenizer, const ChatTemplate* chat)
      : record_(record), tokenizer_(tokenizer), chat_(chat) {}

  Ids prompt() const {
    if (chat_ == nullptr) return of_text(record_.prompt);
    Conversation asked = record_.conversation;
    asked.messages.resize(record_.prompt_messages, Message("user", ""));
    return of_chat(chat_->prompt(asked));
  }
  Ids first() const { return of_answer(record_.conversation, record_.answer); }
  Ids rejected() const { return of_answer(record_.rejected_conversation, record_.rejected); }

 private:
  Ids of_answer(const Conversation& conversation, const std::string& text) const {
    if (chat_ != nullptr) return of_chat(chat_->text(conversation));
    return of_ended_text(record_.prompt + text);
  }
  // As TRL has it, EOS is written after the text. Llama 2's tokenizer does not find it there, since
  // it looks for it in normalized text, where it begins with a space: there its id is added.
  Ids of_ended_text(const std::string& text) const {
    const int32_t eos = tokenizer_.eos_id().value();
    const std::string_view word = tokenizer_.token_of(eos).value_or("");
    Ids ids = of_text(text.ends_with(word) ? text : text + std::string(word));
    if (ids.back() == eos) return ids;
    ids = of_text(text);
    tokenizer_.require_rows({&eos, 1});
    ids.push_back(eos);
    return ids;
  }
  Ids of_text(std::string text) const {
    return ids_of(tokenizer_, std::move(text), SpecialTokens::around);
  }
  Ids of_chat(std::string text) const {
    return ids_of(tokenizer_, std::move(text), SpecialTokens::none);
  }

  const Record& record_;
  const Tokenizer& tokenizer_;
  const ChatTemplate* chat_;
};

int64_t longest(const PreferencePair& pair) {
  return std::max(std::ssize(pair.chosen.ids), std::ssize(pair.rejected.ids));
}

int64_t longest(std::span<const LabelledAnswer> answers) {
  int64_t tokens = 0;
  for (const LabelledAnswer& answer : answers)
    tokens = std::max(tokens, std::ssize(answer.document.ids));
  return tokens;
}

// How many tokens stay at the beginning of a text whatever goes: the one before every text.
int64_t tokens_that_stay(const Document& document, const Tokenizer& tokenizer) {
  return document.ids.front() == tokenizer.bos_id().value_or(-1) ? 1 : 0;
}

LabelledAnswer labelled(const Ids& prompt, Ids ids, bool is_desirable, const char* which) {
  const int64_t begin = common_beginning(prompt, ids);
  if (begin == 0)
    base::throw_user_error(
        "the prompt makes no token, so that no other answer to it can be compared; fill it in");
  return {compared_document(std::move(ids), begin, which), begin, is_desirable};
}

}  // namespace

PreferencePair tokenize_pair(const Record& record, const Tokenizer& tokenizer,
                             const ChatTemplate* chat) {
  const AnswerIds ids(record, tokenizer, chat);
  const Ids prompt = ids.prompt();
  Ids chosen = ids.first();
  Ids rejected = ids.rejected();
  PreferencePair pair;
  pair.prompt_tokens =
      std::min(common_beginning(prompt, chosen), common_beginning(prompt, rejected));
  pair.chosen = compared_document(std::move(chosen), pair.prompt_tokens, "chosen");
  pair.rejected = compared_document(std::move(rejected), pair.prompt_tokens, "rejected");
  return pair;
}

std::vector<LabelledAnswer> tokenize_answers(const Record& record, const Tokenizer& tokenizer,
                                             const ChatTemplate* chat) {
  const AnswerIds ids(record, tokenizer, chat);
  const Ids prompt = ids.prompt();
  std::vector<LabelledAnswer> answers;
  if (record.form == RecordForm::preference) {
    answers.push_back(labelled(prompt, ids.first(), true, "chosen"));
    answers.push_back(labelled(prompt, ids.rejected(), false, "rejected"));
  } else {
    answers.push_back(labelled(prompt, ids.first(), record.is_desirable, "completion"));
  }
  return answers;
}

PreferencePair tokenize_pair_end(const Record& record, const Tokenizer& tokenizer,
                                 const ChatTemplate* chat, int64_t most) {
  PreferencePair pair = tokenize_pair(record, tokenizer, chat);
  const int64_t whole = longest(pair);
  if (whole <= most) return pair;
  if (chat != nullptr) {
    const auto tokenize = [&](const Record& one) { return tokenize_pair(one, tokenizer, chat); };
    pair = tokenize(without_oldest_turns(
        record, [&](const Record& one) { return longest(tokenize(one)) <= most; }));
    pair.dropped = whole - longest(pair);
    return pair;
  }
  const int64_t first = tokens_that_stay(pair.chosen, tokenizer);
  pair.dropped = prompt_tokens_to_drop(pair.prompt_tokens, whole, most, first);
  drop_tokens(pair.chosen, first, pair.dropped);
  drop_tokens(pair.rejected, first, pair.dropped);
  pair.prompt_tokens -= pair.dropped;
  return pair;
}

std::vector<LabelledAnswer> tokenize_answers_end(const Record& record, const Tokenizer& tokenizer,
                                                 const ChatTemplate* chat, int64_t most) {
  std::vector<LabelledAnswer> answers = tokenize_answers(record, tokenizer, chat);
  const int64_t whole = longest(answers);
  if (whole <= most) return answers;
  if (chat != nullptr) {
    const auto tokenize = [&](const Record& one) { return tokenize_answers(one, tokenizer, chat); };
    answers = tokenize(without_oldest_turns(
        record, [&](const Record& one) { return longest(tokenize(one)) <= most; }));
    for (LabelledAnswer& answer : answers) answer.dropped = whole - longest(answers);
    return answers;
  }
  for (LabelledAnswer& answer : answers) {
    const int64_t first = tokens_that_stay(answer.document, tokenizer);
    answer.dropped = prompt_tokens_to_drop(answer.prompt_tokens, whole, most, first);
    drop_tokens(answer.document, first, answer.dropped);
    answer.prompt_tokens -= answer.dropped;
  }
  return answers;
}

}  // namespace snug::text
