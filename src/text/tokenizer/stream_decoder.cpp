#include "text/tokenizer/stream_decoder.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

constexpr size_t kContext = 8;  // ids of a prompt on which the first piece of text may depend
// A character has at most 4 bytes, and so at most 4 byte tokens.
constexpr size_t kHeldBack = 8;

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {}

void StreamDecoder::start_after(std::span<const int32_t> ids) {
  const auto context = ids.last(std::min(ids.size(), kContext));
  window_.assign(context.begin(), context.end());
  printed_ids_ = window_.size();
}

std::string StreamDecoder::push(int32_t id) {
  window_.push_back(id);
  return take(false);
}

std::string StreamDecoder::finish() { return take(true); }

std::string StreamDecoder::take(bool at_end) {
  const std::string all = tokenizer_.decode(window_, skip_special_tokens_);
  const std::string printed =
      tokenizer_.decode(std::span(window_).first(printed_ids_), skip_special_tokens_);
  const bool is_held_back = window_.size() - printed_ids_ <= kHeldBack;
  if (!at_end && is_held_back && all.ends_with(kReplacementCharacter)) return "";
  if (all.size() <= printed.size()) return "";
  // Ids that were printed earlier only matter for how the next ones begin.
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(printed_ids_));
  printed_ids_ = window_.size();
  // Bytes that were a character turn into something else where the next byte continues them to
  // nothing; what is told then begins with a whole character.
  size_t begin = printed.size();
  while (begin < all.size() && is_inside_character(all[begin])) ++begin;
  return all.substr(begin);
}

}  // namespace snug::text
