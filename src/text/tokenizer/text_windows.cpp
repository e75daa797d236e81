#include "text/tokenizer/text_windows.h"

#include <algorithm>

namespace snug::text {

void TextWindows::begin() {
  encoder_.emplace(tokenizer_);
  ids_.clear();
  trained_.clear();
  tokens_ = own_tokens_ = 0;
  take(tokenizer_.ids_before(), false);
}

void TextWindows::add(std::string_view piece) {
  encoded_.clear();
  encoder_->add(piece, encoded_);
  own_tokens_ += static_cast<int64_t>(encoded_.size());
  take(encoded_, true);
  store_complete();
}

int64_t TextWindows::finish() {
  encoded_.clear();
  encoder_->finish(encoded_);
  own_tokens_ += static_cast<int64_t>(encoded_.size());
  take(encoded_, true);
  if (own_tokens_ == 0) return 0;
  take(tokenizer_.ids_after(), false);
  const int32_t eos = tokenizer_.eos_id().value();
  // Some tokenizers add EOS to every text themselves.
  if (ids_.back() != eos) take({&eos, 1}, true);
  trained_.back() = 1;
  store_complete();
  if (ids_.size() >= 2) store_(ids_, trained_);
  return tokens_;
}

void TextWindows::take(std::span<const int32_t> ids, bool is_learned) {
  tokenizer_.require_rows(ids);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  trained_.insert(trained_.end(), ids.size(), is_learned || train_on_all_ ? 1 : 0);
  tokens_ += static_cast<int64_t>(ids.size());
}

void TextWindows::store_complete() {
  const std::span<const int32_t> ids = ids_;
  const std::span<const uint8_t> trained = trained_;
  size_t begin = 0;
  // The last token is kept back: it may still become a target, and the end of its window.
  for (; begin + most_ < ids.size(); begin += most_ - 1)
    store_(ids.subspan(begin, most_), trained.subspan(begin, most_));
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(begin));
  trained_.erase(trained_.begin(), trained_.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace snug::text
