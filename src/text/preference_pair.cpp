#include "text/preference_pair.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace snug::text {
namespace {

using Ids = std::vector<int32_t>;

Ids ids_of(const Tokenizer& tokenizer, std::string text, SpecialTokens special) {
  const std::array parts{Part{std::move(text), -1, false}};
  return tokenize_parts(tokenizer, parts, special).ids;
}

std::string with_eos(std::string text, std::string_view eos) {
  if (!text.ends_with(eos)) text += eos;
  return text;
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

}  // namespace

PreferencePair tokenize_pair(const Record& record, const Tokenizer& tokenizer,
                             const ChatTemplate* chat) {
  Ids prompt;
  Ids chosen;
  Ids rejected;
  if (chat != nullptr) {
    const auto special = chat->takes_special_tokens() ? SpecialTokens::before : SpecialTokens::none;
    Conversation asked = record.conversation;
    asked.messages.resize(record.prompt_messages, Message("user", ""));
    prompt = ids_of(tokenizer, chat->prompt(asked), special);
    chosen = ids_of(tokenizer, chat->text(record.conversation), special);
    rejected = ids_of(tokenizer, chat->text(record.rejected_conversation), special);
  } else {
    const std::string_view eos = tokenizer.token_of(tokenizer.eos_id().value()).value_or("");
    const auto around = SpecialTokens::around;
    prompt = ids_of(tokenizer, record.prompt, around);
    chosen = ids_of(tokenizer, record.prompt + with_eos(record.answer, eos), around);
    rejected = ids_of(tokenizer, record.prompt + with_eos(record.rejected, eos), around);
  }
  PreferencePair pair;
  pair.prompt_tokens =
      std::min(common_beginning(prompt, chosen), common_beginning(prompt, rejected));
  pair.chosen = compared_document(std::move(chosen), pair.prompt_tokens, "chosen");
  pair.rejected = compared_document(std::move(rejected), pair.prompt_tokens, "rejected");
  return pair;
}

}  // namespace snug::text
