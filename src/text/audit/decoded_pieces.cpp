#include "text/audit/decoded_pieces.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace snug::text {
namespace {

// So many tokens before a piece decide how it begins, as a space before a word does, and hold the
// whole of a character that it ends.
constexpr size_t kContextTokens = 8;

// Text that goes on where the pieces before it end: the text of tokens [begin, end) of `ids`, and
// how many bytes at the end of the text before it belong to a character that it ends.
struct ContinuedText {
  std::string text;
  size_t taken_back = 0;
};

ContinuedText text_of(const std::vector<int32_t>& ids, size_t begin, size_t end,
                      const Tokenizer& tokenizer) {
  const size_t context = std::min(begin, kContextTokens);
  const auto from = std::span(ids).subspan(begin - context, end - begin + context);
  const std::string before = tokenizer.decode(from.first(context), false);
  const std::string whole = tokenizer.decode(from, false);
  const auto differs = std::ranges::mismatch(before, whole);
  const auto equal = static_cast<size_t>(differs.in1 - before.begin());
  return {whole.substr(equal), before.size() - equal};
}

std::string ids_text(const std::vector<int32_t>& ids, size_t begin, size_t end) {
  return fmt::format("{}{}", begin == 0 ? "" : " ",
                     fmt::join(std::span(ids).subspan(begin, end - begin), " "));
}

}  // namespace

std::vector<DecodedPiece> decode_pieces(std::span<const int32_t> words,
                                        const Tokenizer* tokenizer) {
  std::vector<int32_t> ids;
  ids.reserve(words.size());
  for (const int32_t word : words) ids.push_back(DocumentStore::id_of(word));
  const auto is_added = [&](size_t place) {
    return tokenizer != nullptr && tokenizer->is_added(ids[place]);
  };
  std::vector<DecodedPiece> pieces;
  for (size_t begin = 0; begin < words.size();) {
    const bool is_trained = DocumentStore::is_target(words[begin]);
    size_t end = begin + 1;
    while (!is_added(begin) && end < words.size() && !is_added(end) &&
           DocumentStore::is_target(words[end]) == is_trained)
      ++end;
    ContinuedText next;
    if (tokenizer != nullptr)
      next = text_of(ids, begin, end, *tokenizer);
    else
      next.text = ids_text(ids, begin, end);
    if (!pieces.empty()) {
      std::string& before = pieces.back().text;
      before.resize(before.size() - std::min(before.size(), next.taken_back));
    }
    pieces.push_back({.text = std::move(next.text),
                      .begin = static_cast<int32_t>(begin),
                      .end = static_cast<int32_t>(end),
                      .is_trained = is_trained,
                      .is_added = is_added(begin)});
    begin = end;
  }
  return pieces;
}

}  // namespace snug::text
