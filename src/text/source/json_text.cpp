#include "text/source/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace snug::text {
namespace {

bool is_escaped(char c) { return static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\'; }

void append_escaped(std::string& to, char c) {
  switch (c) {
    case '"':
      to += "\\\"";
      return;
    case '\\':
      to += "\\\\";
      return;
    case '\n':
      to += "\\n";
      return;
    case '\r':
      to += "\\r";
      return;
    case '\t':
      to += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

}  // namespace

void append_json_string(std::string& to, std::string_view text) {
  to += '"';
  while (!text.empty()) {
    const auto escaped = std::ranges::find_if(text, is_escaped);
    const auto plain = static_cast<size_t>(escaped - text.begin());
    to.append(text.substr(0, plain));
    if (escaped != text.end()) append_escaped(to, *escaped);
    text.remove_prefix(std::min(plain + 1, text.size()));
  }
  to += '"';
}

void append_unread_row(std::string& to, std::string_view why) {
  append_json_string(to, why);
  to += '\n';
}

}  // namespace snug::text
