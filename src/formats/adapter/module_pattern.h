// A regular expression over full module names, as in PEFT's target_modules and exclude_modules when
// they are a text: Python's syntax, where the whole name must match (re.fullmatch). PCRE2 runs it;
// syntax that PCRE2 reads differently is translated or refused. Immutable; matches may be called
// from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;

namespace snug::formats {

class ModulePattern {
 public:
  // Throws std::invalid_argument that says what is wrong with `pattern`, or what in it is not
  // supported.
  explicit ModulePattern(const std::string& pattern);

  // Throws std::invalid_argument where matching exceeds the engine's limits.
  bool matches(std::string_view module) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::string written_;
  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

// Whether a text can only be an expression: names of modules consist of letters, digits, '_', '-'
// and '.'.
bool is_module_pattern(std::string_view text);

}  // namespace snug::formats
