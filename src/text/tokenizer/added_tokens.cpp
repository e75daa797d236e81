#include "text/tokenizer/added_tokens.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

uint8_t byte_at(std::string_view text, size_t position) {
  return static_cast<uint8_t>(text[position]);
}

size_t previous_character(std::string_view text, size_t position) {
  do --position;
  while ((static_cast<unsigned char>(text[position]) & 0xC0U) == 0x80U);
  return position;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  const bool before =
      begin > 0 && is_word(code_point_at(text, previous_character(text, begin)).value);
  return before || (end < text.size() && is_word(code_point_at(text, end).value));
}

size_t strip_left(std::string_view text, size_t begin) {
  while (begin > 0) {
    const size_t previous = previous_character(text, begin);
    if (!is_white_space(code_point_at(text, previous).value)) break;
    begin = previous;
  }
  return begin;
}

size_t strip_right(std::string_view text, size_t end) {
  while (end < text.size()) {
    const CodePoint point = code_point_at(text, end);
    if (!is_white_space(point.value)) break;
    end += point.size;
  }
  return end;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedPattern> patterns)
    : entries_(std::move(patterns)) {
  std::sort(entries_.begin(), entries_.end(),
            [](const AddedPattern& a, const AddedPattern& b) { return a.pattern < b.pattern; });
  for (const AddedPattern& entry : entries_) {
    longest_ = std::max(longest_, entry.pattern.size());
    ++first_of_byte_[byte_at(entry.pattern, 0) + 1U];
  }
  std::partial_sum(first_of_byte_.begin(), first_of_byte_.end(), first_of_byte_.begin());
}

// Narrows the range of entries byte by byte to those that agree with the text. Among entries with
// the same beginning, the one that ends there comes first.
const AddedPattern* AddedTokenFinder::longest_at(std::string_view text, size_t position) const {
  const AddedPattern* longest = nullptr;
  const size_t first = byte_at(text, position);
  auto begin = entries_.begin() + first_of_byte_[first];
  auto end = entries_.begin() + first_of_byte_[first + 1];
  for (size_t size = 1; begin != end; ++size) {
    if (begin->pattern.size() == size) longest = &*begin++;
    if (position + size == text.size()) break;
    const uint8_t next = byte_at(text, position + size);
    const auto is_before = [size](const AddedPattern& entry, uint8_t byte) {
      return byte_at(entry.pattern, size) < byte;
    };
    const auto is_after = [size](uint8_t byte, const AddedPattern& entry) {
      return byte < byte_at(entry.pattern, size);
    };
    begin = std::lower_bound(begin, end, next, is_before);
    end = std::upper_bound(begin, end, next, is_after);
  }
  return longest;
}

bool AddedTokenFinder::touches(std::string_view text, size_t position) const {
  const size_t reach = longest();
  for (size_t begin = position - std::min(position, reach); begin <= position; ++begin) {
    const auto* entry = begin < text.size() ? longest_at(text, begin) : nullptr;
    if (entry != nullptr && begin + entry->pattern.size() >= position) return true;
  }
  return false;
}

std::vector<TextSpan> AddedTokenFinder::find(std::string_view text) const {
  std::vector<TextSpan> spans;
  size_t done = 0;
  for (size_t position = 0; !entries_.empty() && position < text.size();) {
    const AddedPattern* entry = longest_at(text, position);
    if (entry == nullptr) {
      ++position;
      continue;
    }
    size_t begin = position;
    size_t end = position + entry->pattern.size();
    position = end;
    if (entry->token.single_word && touches_word(text, begin, end)) continue;
    if (entry->token.lstrip) begin = std::max(strip_left(text, begin), done);
    if (entry->token.rstrip) end = strip_right(text, end);
    if (begin > end)
      base::throw_user_error(
          "the added token '{}' (lstrip) is not supported within white space that another takes "
          "(rstrip)",
          entry->token.content);
    if (begin > done) spans.push_back({done, begin, -1});
    if (begin < end) spans.push_back({begin, end, entry->token.id});
    done = end;
  }
  if (done < text.size()) spans.push_back({done, text.size(), -1});
  return spans;
}

}  // namespace snug::text
