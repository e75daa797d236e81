#include "text/tokenizer/text_cut.h"

#include <algorithm>
#include <string>

#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

size_t character_before(std::string_view text, size_t position) {
  do --position;
  while (is_inside_character(text[position]));
  return position;
}

bool ends_in_space(std::string_view text) {
  return !text.empty() &&
         is_white_space(code_point_at(text, character_before(text, text.size())).value);
}

// Whether a token may include the place in normalized text, judged by the text around it. A normal
// form shortens a text to no less than a quarter of its bytes.
bool touches_normalized(const Tokenizer::Parts& parts, std::string_view text, size_t position) {
  const AddedTokenFinder& finder = parts.in_normalized;
  if (finder.empty()) return false;
  if (!parts.normalizer) return finder.touches(text, position);
  const size_t reach = 4 * finder.longest() + 4;
  size_t begin = position - std::min(position, reach);
  while (is_inside_character(text[begin])) ++begin;
  size_t end = std::min(text.size(), position + reach);
  while (end < text.size() && is_inside_character(text[end])) --end;
  std::string around(text.substr(begin, position - begin));
  parts.normalize_rest(around);
  std::string after(text.substr(position, end - position));
  parts.normalize_rest(after);
  const size_t place = around.size();
  const bool follows_space = ends_in_space(around);
  around += after;
  return follows_space || finder.touches(around, place);
}

bool can_cut(const Tokenizer::Parts& parts, std::string_view text, size_t position) {
  if (is_inside_character(text[position])) return false;
  if (!stands_alone(code_point_at(text, position).value)) return false;
  if (ends_in_space(text.substr(0, position))) return false;
  return !parts.in_original.touches(text, position) && !touches_normalized(parts, text, position);
}

}  // namespace

bool stands_alone(char32_t value) {
  const auto within = [value](char32_t first, char32_t last) {
    return value >= first && value <= last;
  };
  return value < 0x300 || within(0x3041, 0x3096) || within(0x30A1, 0x30FA) ||
         within(0x4E00, 0x9FFF) || within(0xAC00, 0xD7A3);
}

size_t last_cut(const Tokenizer::Parts& parts, std::string_view text) {
  if (parts.normalizer && !parts.normalizer->takes_pieces()) return 0;
  // The end of the text could become part of a token with what follows.
  const size_t longest = std::max(parts.in_original.longest(), 4 * parts.in_normalized.longest());
  if (text.size() <= longest + 4) return 0;
  for (size_t position = text.size() - longest - 4; position > text.size() / 2; --position)
    if (can_cut(parts, text, position)) return position;
  return 0;
}

}  // namespace snug::text
