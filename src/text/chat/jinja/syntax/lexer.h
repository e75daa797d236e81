// A template's source as tokens, with white space taken away where jinja2 takes it with
// trim_blocks and lstrip_blocks, as transformers sets them: the line break after a block, the
// spaces before one at the start of a line, and what a "-" asks for.
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
  std::string text;  // as written; a text's escapes are replaced
  int line = 1;

  bool is(Kind wanted) const { return kind == wanted; }
  bool is_mark(std::string_view mark) const { return kind == Kind::mark && text == mark; }
  bool is_name(std::string_view name) const { return kind == Kind::name && text == name; }
};

// Throws SyntaxError. The last token is the end.
std::vector<Token> tokens_of(std::string_view source);

// What is wrong with a source, and in which line.
struct SyntaxError {
  std::string message;
  int line = 1;
};

}  // namespace snug::text::jinja
