#include "train/lazy_tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "train/trained_chat.h"

namespace snug::train {

const text::Tokenizer& LazyTokenizer::open() {
  if (tokenizer_) return *tokenizer_;
  if (model_.folder.empty())
    recipe_.fail("model", fmt::format("\"{}\" is a built-in shape without a tokenizer; give the "
                                      "folder of a model, or data of tokens (input_ids)",
                                      recipe_.model));
  tokenizer_.emplace(text::Tokenizer::from_folder(model_.folder.string(), model_.config.vocab_size,
                                                  recipe_.adapter, recipe_.added_tokens));
  tell_tokens_of_adapter(*tokenizer_, recipe_, model_);
  return *tokenizer_;
}

void LazyTokenizer::try_open() {
  try {
    open();
  } catch (const base::UserError&) {
    tokenizer_.reset();
  }
}

std::optional<text::Tokenizer> LazyTokenizer::take() {
  return std::exchange(tokenizer_, std::nullopt);
}

int32_t LazyTokenizer::padding_id() const {
  if (!tokenizer_) return 0;
  const int32_t padding = tokenizer_->pad_id().value_or(tokenizer_->eos_id().value_or(0));
  return padding < model_.config.vocab_size ? padding : 0;
}

}  // namespace snug::train
