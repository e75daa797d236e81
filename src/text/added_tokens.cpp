#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace snug::text {
namespace {

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

void AddedTokenFinder::add(const std::string& pattern, const AddedToken& token) {
  if (pattern.empty()) return;
  auto& bucket = by_first_byte_[static_cast<unsigned char>(pattern[0])];
  bucket.push_back(static_cast<uint32_t>(entries_.size()));
  entries_.push_back({pattern, token});
  std::stable_sort(bucket.begin(), bucket.end(), [&](uint32_t a, uint32_t b) {
    return entries_[a].pattern.size() > entries_[b].pattern.size();
  });
}

const AddedTokenFinder::Entry* AddedTokenFinder::longest_at(std::string_view text,
                                                            size_t position) const {
  for (const uint32_t index : by_first_byte_[static_cast<unsigned char>(text[position])]) {
    const Entry& entry = entries_[index];
    if (text.substr(position, entry.pattern.size()) == entry.pattern) return &entry;
  }
  return nullptr;
}

size_t AddedTokenFinder::longest() const {
  size_t longest = 0;
  for (const auto& entry : entries_) longest = std::max(longest, entry.pattern.size());
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
    const Entry* entry = longest_at(text, position);
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
    if (begin > done) spans.push_back({done, begin, -1});
    spans.push_back({begin, end, entry->token.id});
    done = end;
  }
  if (done < text.size()) spans.push_back({done, text.size(), -1});
  return spans;
}

}  // namespace snug::text
