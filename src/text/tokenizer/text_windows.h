// Divides a text of any length into documents of at most max_length tokens, which overlap by one
// token, so that every token except the first is a target exactly once. The text is added in pieces
// (text_encoder.h), and a window is stored when it is complete. One text at a time, one thread.
// Tokenizer and store must outlive the object.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer/text_encoder.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

class TextWindows {
 public:
  // Receives a window's ids, and which of them are learned.
  using Store = std::function<void(std::span<const int32_t>, std::span<const uint8_t>)>;

  TextWindows(const Tokenizer& tokenizer, int32_t max_length, bool train_on_all, Store store)
      : tokenizer_(tokenizer),
        most_(static_cast<size_t>(max_length)),
        train_on_all_(train_on_all),
        store_(std::move(store)) {}

  void begin();
  void add(std::string_view piece);
  // Ends the text with the tokenizer's own end tokens and EOS. Returns the number of the text's
  // tokens; if that is 0, nothing was stored.
  int64_t finish();

 private:
  void take(std::span<const int32_t> ids, bool is_learned);
  void store_complete();

  const Tokenizer& tokenizer_;
  size_t most_;
  bool train_on_all_;
  Store store_;
  std::optional<TextEncoder> encoder_;
  std::vector<int32_t> encoded_;  // ids of one piece
  // Ids that are not in a complete window, except for the one that overlaps.
  std::vector<int32_t> ids_;
  std::vector<uint8_t> trained_;
  int64_t tokens_ = 0;
  int64_t own_tokens_ = 0;
};

}  // namespace snug::text
