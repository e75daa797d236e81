#include "text/jinja/python_text.h"

#include <algorithm>

#include "text/jinja/value.h"
#include "text/utf8.h"

namespace snug::text::jinja {
namespace {

// The ends of the first white space at or after `from`, or of nothing.
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

bool is_in(char32_t value, std::optional<std::string_view> set) {
  if (!set) return is_python_space(value);
  for (size_t i = 0; i < set->size();) {
    const CodePoint c = code_point_at(*set, i);
    if (c.value == value) return true;
    i += c.size;
  }
  return false;
}

size_t last_character(std::string_view text) {
  size_t i = text.size() - 1;
  while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) --i;
  return i;
}

std::vector<std::string> split_at_spaces(std::string_view text, int64_t most) {
  std::vector<std::string> parts;
  text = strip(text, Side::left);
  while (!text.empty()) {
    const auto [begin, end] = next_spaces(text, 0);
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.emplace_back(text);  // what is left keeps the spaces at its end
      break;
    }
    parts.emplace_back(text.substr(0, begin));
    text = text.substr(end);
  }
  return parts;
}

std::vector<std::string> split_at_spaces_from_right(std::string_view text, int64_t most) {
  std::vector<std::string> parts;
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
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

size_t byte_of(std::string_view text, int64_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index)
    at += sequence_length(static_cast<unsigned char>(text[at]));
  return std::min(at, text.size());
}

std::string_view strip(std::string_view text, Side side, std::optional<std::string_view> set) {
  if (side != Side::right)
    while (!text.empty()) {
      const CodePoint c = code_point_at(text, 0);
      if (!is_in(c.value, set)) break;
      text.remove_prefix(c.size);
    }
  if (side != Side::left)
    while (!text.empty()) {
      const size_t at = last_character(text);
      if (!is_in(code_point_at(text, at).value, set)) break;
      text = text.substr(0, at);
    }
  return text;
}

std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator,
                               int64_t most, bool from_right) {
  if (!separator)
    return from_right ? split_at_spaces_from_right(text, most) : split_at_spaces(text, most);
  if (separator->empty()) fail("split has an empty separator");
  std::vector<std::string> parts;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
    if (at == std::string_view::npos) break;
    const size_t after = at + separator->size();
    parts.emplace_back(from_right ? text.substr(after) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(after);
  }
  parts.emplace_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
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
  std::string out;
  if (old.empty()) {
    int64_t done = 0;
    for (size_t i = 0; i <= text.size(); ++done) {
      if (most < 0 || done < most) out += with;
      if (i == text.size()) break;
      const size_t size = sequence_length(static_cast<unsigned char>(text[i]));
      out += text.substr(i, size);
      i += size;
    }
    return out;
  }
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    const size_t at = text.find(old);
    if (at == std::string_view::npos) break;
    out += text.substr(0, at);
    out += with;
    text = text.substr(at + old.size());
  }
  return out += text;
}

int64_t count(std::string_view text, std::string_view part) {
  if (part.empty()) return length(text) + 1;
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string fill(std::string_view text, int64_t width, char32_t with, Side side) {
  const int64_t missing = width - length(text);
  if (missing <= 0) return std::string(text);
  // str.center puts the odd character to the left where the width is odd.
  const int64_t left = side == Side::left    ? 0
                       : side == Side::right ? missing
                                             : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) append_code_point(out, with);
  out += text;
  for (int64_t i = left; i < missing; ++i) append_code_point(out, with);
  return out;
}

}  // namespace snug::text::jinja
