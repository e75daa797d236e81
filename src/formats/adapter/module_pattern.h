// A regular expression over full module names, as in PEFT's target_modules and exclude_modules when
// they are a text: Python's syntax, where the whole name must match (re.fullmatch). Immutable;
// matches may be called from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/python_pattern.h"

namespace snug::formats {

class ModulePattern {
 public:
  // Throws std::invalid_argument that says what is wrong with `pattern`, or what in it is not
  // supported.
  explicit ModulePattern(const std::string& pattern)
      : pattern_(pattern, base::PythonPattern::Where::whole) {}

  // Throws std::invalid_argument where matching exceeds the engine's limits.
  bool matches(std::string_view module) const { return pattern_.matches(module); }

 private:
  base::PythonPattern pattern_;
};

// The expression of a name that PEFT's rank_pattern and alpha_pattern match: `pattern` stands for a
// whole name or its last parts.
std::string last_parts_pattern(std::string_view pattern);

// Whether a text can only be an expression: names of modules consist of letters, digits, '_', '-'
// and '.'.
bool is_module_pattern(std::string_view text);

}  // namespace snug::formats
