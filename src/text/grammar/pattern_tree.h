// Regular expressions in Python's syntax as trees. What has no automaton, such as a look around or
// a back reference, is refused by name with its place. Values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/grammar/code_point_set.h"

namespace snug::text {

struct Pattern {
  enum class Kind : uint8_t {
    nothing,   // the empty text
    set,       // one character of `set`
    sequence,  // all of `parts`, one after another
    choice,    // one of `parts`
    repeat,    // parts[0], `least` to `most` times
    begin,     // ^ and \A
    end,       // $, \Z and \z
  };
  static constexpr int64_t kNoLimit = -1;

  Kind kind = Kind::nothing;
  CodePointSet set{};
  std::vector<Pattern> parts{};
  int64_t least = 0;
  int64_t most = 0;
  size_t at = 0;  // byte of the expression
};

// Throws std::invalid_argument that says what is wrong or not built, and where.
Pattern read_pattern_tree(std::string_view expression);

// Throws std::invalid_argument: `what` in the expression.
[[noreturn]] void refuse_pattern(std::string_view expression, std::string_view what, size_t at);

}  // namespace snug::text
