// Divides a template's source into tokens. White space is removed as in jinja2 with trim_blocks and
// lstrip_blocks, which transformers sets: the line break after a block, spaces before a block at
// the start of a line, and what a "-" asks for. Without `trims_lines`, only the last.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug::text::jinja {

struct Token {
  enum class Kind : uint8_t {
    data,  // text between tags
    output_begin,
    output_end,
    block_begin,
    block_end,
    name,
    text,
    integer,
    real,
    mark,  // an operator or a bracket
    end
  };
  Kind kind = Kind::end;
  std::string text;  // as written, but with escapes in strings replaced
  int line = 1;

  bool is(Kind wanted) const { return kind == wanted; }
  bool is_mark(std::string_view mark) const { return kind == Kind::mark && text == mark; }
  bool is_name(std::string_view name) const { return kind == Kind::name && text == name; }
};

// Throws SyntaxError. The last token marks the end.
std::vector<Token> tokens_of(std::string_view source, bool trims_lines = true);

// An error in a source, with its line.
struct SyntaxError {
  std::string message;
  int line = 1;
};

}  // namespace snug::text::jinja
