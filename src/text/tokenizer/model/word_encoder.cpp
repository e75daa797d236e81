#include "text/tokenizer/model/word_encoder.h"

#include <algorithm>

#include "base/error.h"
#include "text/tokenizer/model/growth.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

// Encodes the spans of an open word that the model can encode separately, whatever follows.
void take_spans(const Model& model, Words& words) {
  if (!words.is_open) return;
  Words::Word& word = words.list.back();
  const auto text = std::string_view(words.buffer).substr(word.begin, word.end - word.begin);
  const size_t begin = model.last_span(text);
  words.done += begin;
  word.end = word.begin + begin;
  word.origin = std::min(word.origin, begin);
  words.is_open = false;
}

}  // namespace

size_t encode_words(const Tokenizer::Parts& parts, std::string_view text, WordPlace place,
                    std::vector<int32_t>& ids) {
  Words words;
  size_t bytes = place.window_bytes;
  size_t done = 0;
  while (done < text.size()) {
    const std::string_view window = first_bytes(text.substr(done), bytes);
    const bool is_last = done + window.size() == text.size();
    words.buffer.assign(window);
    const size_t origin = place.origin - std::min(place.origin, done);
    words.list.assign(1, {0, window.size(), std::min(origin, window.size())});
    words.is_open = place.is_open || !is_last;
    words.splits_at_marks = parts.model->splits_at_marker();
    words.done = 0;
    words.most = most_bytes_from(window.size());
    const bool was_open = words.is_open;
    if (parts.pre_tokenizer) parts.pre_tokenizer->apply(words);
    take_spans(*parts.model, words);
    const std::string_view buffer = words.buffer;
    for (const Words::Word& word : words.list)
      parts.model->encode(buffer.substr(word.begin, word.end - word.begin), ids);
    const size_t taken = was_open ? words.done : window.size();
    if (taken == 0 && window.size() > Model::kMaxBytes)
      base::throw_user_error(
          "the tokenizer finds no place in {} bytes of text where tokens certainly end; split the "
          "text",
          window.size());
    if (taken == 0 && is_last) break;  // the word is open, so what follows decides
    bytes = taken == 0 ? 2 * bytes : place.window_bytes;
    done += taken;
  }
  return done;
}

}  // namespace snug::text
