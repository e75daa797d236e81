#include "text/chat/jinja/values/python_text.h"

#include <algorithm>

#include "text/chat/jinja/values/character_set.h"
#include "text/chat/jinja/values/part_search.h"
#include "text/chat/jinja/values/text_builder.h"
#include "text/chat/jinja/values/value.h"
#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

// The range of the first white space at or after `from`; an empty range if there is none.
std::pair<size_t, size_t> next_spaces(std::string_view text, size_t from) {
  size_t begin = std::string_view::npos;
  for (size_t i = from; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const bool is_space = is_python_space(c.value);
    if (is_space && begin == std::string_view::npos) begin = i;
    if (!is_space && begin != std::string_view::npos) return {begin, i};
    i += c.size;
  }
  return {begin == std::string_view::npos ? text.size() : begin, text.size()};
}

size_t last_character(std::string_view text) {
  size_t i = text.size() - 1;
  while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) --i;
  return i;
}

Parts split_at_spaces(std::string_view text, int64_t most) {
  charge_steps(text.size(), kWalkedPerStep);
  Parts parts;
  text = strip(text, Side::left);
  while (!text.empty()) {
    const auto [begin, end] = next_spaces(text, 0);
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.emplace_back(text);  // the last part keeps its trailing spaces
      break;
    }
    parts.emplace_back(text.substr(0, begin));
    text = text.substr(end);
  }
  return parts;
}

Parts split_at_spaces_from_right(std::string_view text, int64_t most) {
  charge_steps(text.size(), kWalkedPerStep);
  Parts parts;
  text = strip(text, Side::right);
  while (!text.empty()) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.emplace_back(text);
      break;
    }
    size_t begin = text.size();
    while (begin > 0) {
      const size_t at = last_character(text.substr(0, begin));
      if (is_python_space(code_point_at(text, at).value)) break;
      begin = at;
    }
    parts.emplace_back(text.substr(begin));
    text = strip(text.substr(0, begin), Side::right);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

bool is_python_space(char32_t value) {
  return is_white_space(value) || (value >= 0x1C && value <= 0x1F);
}

int64_t length(std::string_view text) {
  charge_steps(text.size(), kSearchedPerStep);
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

size_t byte_of(std::string_view text, int64_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index)
    at += sequence_length(static_cast<unsigned char>(text[at]));
  charge_steps(at, kSearchedPerStep);
  return std::min(at, text.size());
}

std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> set) {
  const std::optional<CharacterSet> characters =
      set ? std::optional<CharacterSet>(*set) : std::nullopt;
  const auto is_stripped = [&](char32_t c) {
    return characters ? characters->holds(c) : is_python_space(c);
  };
  const size_t before = text.size();
  if (side != Side::right)
    while (!text.empty()) {
      const CodePoint c = code_point_at(text, 0);
      if (!is_stripped(c.value)) break;
      text.remove_prefix(c.size);
    }
  if (side != Side::left)
    while (!text.empty()) {
      const size_t at = last_character(text);
      if (!is_stripped(code_point_at(text, at).value)) break;
      text = text.substr(0, at);
    }
  charge_steps(before - text.size(), kWalkedPerStep);
  return text;
}

Parts split(std::string_view text, std::optional<std::string_view> separator, int64_t most,
            bool from_right) {
  if (!separator)
    return from_right ? split_at_spaces_from_right(text, most) : split_at_spaces(text, most);
  if (separator->empty()) fail("split has an empty separator");
  Parts parts;
  PartSearch search(text, *separator, from_right);
  size_t begin = 0;
  size_t end = text.size();
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t at = search.next();
    if (at == std::string_view::npos) break;
    const size_t after = at + separator->size();
    parts.push_back(from_right ? text.substr(after, end - after) : text.substr(begin, at - begin));
    (from_right ? end : begin) = from_right ? at : after;
  }
  parts.push_back(text.substr(begin, end - begin));
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

Parts split_lines(std::string_view text, bool keep_ends) {
  charge_steps(text.size(), kWalkedPerStep);
  Parts lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const bool ends = (c.value >= 0x0A && c.value <= 0x0D) ||
                      (c.value >= 0x1C && c.value <= 0x1E) || c.value == 0x85 ||
                      c.value == 0x2028 || c.value == 0x2029;
    size_t next = i + c.size;
    if (ends) {
      if (c.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      lines.emplace_back(text.substr(begin, (keep_ends ? next : i) - begin));
      begin = next;
    }
    i = next;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string replace(std::string_view text, std::string_view old, std::string_view with,
                    int64_t most) {
  TextBuilder out;
  size_t begin = 0;
  if (old.empty()) {
    charge_steps(text.size(), kWalkedPerStep);
    for (int64_t done = 0; begin <= text.size() && (most < 0 || done < most); ++done) {
      out.add(with);
      if (begin == text.size()) return out.take();
      const size_t size = sequence_length(static_cast<unsigned char>(text[begin]));
      out.add(text.substr(begin, size));
      begin += size;
    }
  } else {
    PartSearch search(text, old, false);
    for (int64_t done = 0; most < 0 || done < most; ++done) {
      const size_t at = search.next();
      if (at == std::string_view::npos) break;
      out.add(text.substr(begin, at - begin));
      out.add(with);
      begin = at + old.size();
    }
  }
  out.add(text.substr(begin));
  return out.take();
}

int64_t count(std::string_view text, std::string_view part) {
  if (part.empty()) return length(text) + 1;
  int64_t found = 0;
  PartSearch search(text, part, false);
  while (search.next() != std::string_view::npos) ++found;
  return found;
}

std::string escape_html(std::string_view text) {
  charge_steps(text.size(), kWalkedPerStep);
  TextBuilder out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out.add("&amp;");
        break;
      case '<':
        out.add("&lt;");
        break;
      case '>':
        out.add("&gt;");
        break;
      case '\'':
        out.add("&#39;");
        break;
      case '"':
        out.add("&#34;");
        break;
      default:
        out.add(c);
    }
  }
  return out.take();
}

std::string fill(std::string_view text, int64_t width, char32_t with, Side side) {
  const int64_t size = length(text);
  if (width <= size) return std::string(text);
  const int64_t missing = width - size;
  // str.center puts the odd fill character on the left if the width is odd.
  const int64_t left = side == Side::left    ? 0
                       : side == Side::right ? missing
                                             : missing / 2 + (missing & width & 1);
  std::string bytes;
  append_code_point(bytes, with);
  TextBuilder out;
  out.add_times(bytes, left);
  out.add(text);
  out.add_times(bytes, missing - left);
  return out.take();
}

}  // namespace snug::text::jinja
