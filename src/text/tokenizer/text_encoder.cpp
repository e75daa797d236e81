#include "text/tokenizer/text_encoder.h"

#include <algorithm>

#include "base/error.h"
#include "text/tokenizer/text_cut.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace snug::text {
TextEncoder::TextEncoder(const Tokenizer& tokenizer, size_t piece_bytes)
    : parts_(tokenizer.parts()), piece_bytes_(piece_bytes) {}

TextEncoder TextEncoder::of_ordinary(const Tokenizer& tokenizer, bool at_text_start,
                                     size_t piece_bytes) {
  TextEncoder encoder(tokenizer, piece_bytes);
  encoder.at_text_start_ = at_text_start;
  encoder.is_ordinary_ = true;
  return encoder;
}

void TextEncoder::add(std::string_view piece, std::vector<int32_t>& ids) {
  pending_ += piece;
  if (pending_.size() < piece_bytes_) return;
  const size_t cut = last_cut(parts_, pending_);
  if (cut == 0) {
    if (pending_.size() > kMaxHeld && !is_ordinary_)
      base::throw_user_error(
          "the tokenizer finds no place in {} bytes of text to cut it at; split the text into "
          "records of less",
          pending_.size());
    return;
  }
  encode(std::string_view(pending_).substr(0, cut), false, ids);
  pending_.erase(0, cut);
}

void TextEncoder::finish(std::vector<int32_t>& ids) {
  encode(pending_, true, ids);
  end_ordinary(ids);
  pending_ = std::string();
}

void TextEncoder::encode(std::string_view text, bool is_last, std::vector<int32_t>& ids) {
  if (is_ordinary_) {
    add_ordinary(text, ids);
    if (!is_last) encode_carry(true, ids);
    return;
  }
  for (const TextSpan& span : parts_.in_original.find(text)) {
    if (span.id >= 0) {
      end_ordinary(ids);
      ids.push_back(span.id);
      at_text_start_ = false;
      continue;
    }
    add_ordinary(text.substr(span.begin, span.end - span.begin), ids);
    if (!is_last && span.end == text.size()) encode_carry(true, ids);
  }
}

// Adds ordinary text, which continues the current one or begins a new one.
void TextEncoder::add_ordinary(std::string_view text, std::vector<int32_t>& ids) {
  std::string normalized(text);
  size_t origin = 0;
  if (within_ordinary_)
    parts_.normalize_rest(normalized);
  else
    origin = parts_.normalize_from(normalized, at_text_start_);
  within_ordinary_ = true;
  at_text_start_ = false;
  for (const TextSpan& span : parts_.in_normalized.find(normalized)) {
    if (span.id >= 0) {
      encode_carry(false, ids);
      ids.push_back(span.id);
      continue;
    }
    if (carry_.empty()) origin_ = origin - std::min(origin, span.begin);
    carry_.append(normalized, span.begin, span.end - span.begin);
  }
}

void TextEncoder::encode_carry(bool is_open, std::vector<int32_t>& ids) {
  const size_t done = parts_.encode_words(
      carry_, {.origin = origin_, .is_open = is_open, .window_bytes = piece_bytes_ / 4}, ids);
  origin_ -= std::min(origin_, done);
  carry_.erase(0, done);
}

void TextEncoder::end_ordinary(std::vector<int32_t>& ids) {
  encode_carry(false, ids);
  within_ordinary_ = false;
}

}  // namespace snug::text
