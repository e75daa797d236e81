#include "text/unicode/utf8.h"

#include <utf8proc.h>

#include "text/unicode/older_unicode.h"

namespace snug::text {
namespace {

// The length of the well-formed sequence at `position`, or 0 and in `bad` the length of the maximal
// ill-formed part; `cut`: the text ended inside a sequence that was well-formed so far.
struct Scan {
  size_t good = 0;
  size_t bad = 0;
  bool cut = false;
};

Scan scan_at(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, 0, false};
  if (lead < 0xC2 || lead > 0xF4) return {0, 1, false};
  const size_t size = sequence_length(lead);
  for (size_t i = 1; i < size; ++i) {
    if (position + i >= text.size()) return {0, i, true};
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (i == 1) {
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (byte(i) < low || byte(i) > high) return {0, i, false};
  }
  return {size, 0, false};
}

utf8proc_category_t category(char32_t value) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

}  // namespace

size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xE0) return 2;
  return lead < 0xF0 ? 3 : 4;
}

CodePoint code_point_at(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[position + i]));
  };
  const size_t size = sequence_length(static_cast<unsigned char>(text[position]));
  switch (size) {
    case 1:
      return {byte(0), 1};
    case 2:
      return {((byte(0) & 0x1FU) << 6) | (byte(1) & 0x3FU), 2};
    case 3:
      return {((byte(0) & 0x0FU) << 12) | ((byte(1) & 0x3FU) << 6) | (byte(2) & 0x3FU), 3};
    default:
      return {((byte(0) & 0x07U) << 18) | ((byte(1) & 0x3FU) << 12) | ((byte(2) & 0x3FU) << 6) |
                  (byte(3) & 0x3FU),
              4};
  }
}

void append_code_point(std::string& text, char32_t value) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0U | (value >> 6));
    put(0x80U | (value & 0x3FU));
  } else if (value < 0x10000) {
    put(0xE0U | (value >> 12));
    put(0x80U | ((value >> 6) & 0x3FU));
    put(0x80U | (value & 0x3FU));
  } else {
    put(0xF0U | (value >> 18));
    put(0x80U | ((value >> 12) & 0x3FU));
    put(0x80U | ((value >> 6) & 0x3FU));
    put(0x80U | (value & 0x3FU));
  }
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Scan scan = scan_at(text, i);
    if (scan.good == 0) return i;
    i += scan.good;
  }
  return std::string_view::npos;
}

std::string repair_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const Scan scan = scan_at(bytes, i);
    if (scan.good > 0) {
      text.append(bytes.substr(i, scan.good));
    } else {
      append_code_point(text, 0xFFFD);
    }
    i += scan.good + scan.bad;
  }
  return text;
}

size_t incomplete_tail(std::string_view bytes) {
  const size_t first = bytes.size() > 3 ? bytes.size() - 3 : 0;
  for (size_t i = first; i < bytes.size(); ++i) {
    const bool is_lead = (static_cast<unsigned char>(bytes[i]) & 0xC0U) != 0x80U;
    if (is_lead && scan_at(bytes, i).cut) return bytes.size() - i;
  }
  return 0;
}

std::string_view first_bytes(std::string_view text, size_t most) {
  const std::string_view first = text.substr(0, most);
  return first.substr(0, first.size() - incomplete_tail(first));
}

bool is_white_space(char32_t value) {
  return (value >= 0x09 && value <= 0x0D) || value == 0x20 || value == 0x85 || value == 0xA0 ||
         value == 0x1680 || (value >= 0x2000 && value <= 0x200A) || value == 0x2028 ||
         value == 0x2029 || value == 0x202F || value == 0x205F || value == 0x3000;
}

bool is_numeric(char32_t value) {
  const auto kind = category(value);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t value) {
  if (value < 0x80) {
    return (value > 0x20 && value < 0x30) || (value > 0x39 && value < 0x41) ||
           (value > 0x5A && value < 0x61) || (value > 0x7A && value < 0x7F);
  }
  // Punctuation in Unicode 8; later a symbol and a mark.
  if (value == 0x166D || value == 0x111C9) return true;
  const auto kind = category(value);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO && !is_new_punctuation(value);
}

bool is_word(char32_t value) {
  if (value == 0x200C || value == 0x200D) return true;
  const auto kind = category(value);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NL) ||
         kind == UTF8PROC_CATEGORY_PC;
}

}  // namespace snug::text
