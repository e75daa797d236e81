// Regular expressions of tokenizer files, which are written for Oniguruma (Ruby syntax) and run by
// PCRE2. Syntax that the two engines read differently is translated or refused. A compiled Regex is
// immutable; find_all may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace snug::text {

// A half-open range of a text's bytes.
struct Range {
  size_t begin = 0;
  size_t end = 0;
};

class Regex {
 public:
  // Throws std::invalid_argument that says what is wrong or not supported.
  explicit Regex(const std::string& pattern);

  // Matches exactly `text`.
  static Regex literal(std::string_view text);

  // Replaces the content of `matches` by all matches in `text` (valid UTF-8), from left to right,
  // without overlaps. A match may be empty, except directly after another match; an empty text has
  // no matches. Throws UserError if matching exceeds the engine's limits.
  void find_all(std::string_view text, std::vector<Range>& matches) const;

  // Finds matches in a text that continues: only those that are matches whatever follows. Returns
  // the first byte at which the next match may begin.
  size_t find_certain(std::string_view text, std::vector<Range>& matches) const;

  // Whether a match depends on the text before it (an empty match depends on the match before). If
  // not, matching may start again wherever a match ended.
  bool looks_back() const { return looks_back_; }

  // Whether a match may be empty.
  bool may_match_nothing() const { return may_match_nothing_; }

 private:
  struct Compiled {};
  Regex(const std::string& translated, Compiled);

  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  size_t find(std::string_view text, uint32_t options, std::vector<Range>& matches) const;

  std::unique_ptr<pcre2_real_code_8, Free> code_;
  bool looks_back_ = false;
  bool may_match_nothing_ = false;
};

// The PCRE2 pattern with the meaning that `pattern` has in Oniguruma. Throws std::invalid_argument
// if there is none or it is not supported: backreferences; inline options other than i; when case
// is ignored, non-ASCII characters and composed classes; possessive intervals; and escapes that are
// not listed in regex_syntax.cpp and regex_reader.cpp.
std::string translate_regex(std::string_view pattern);

}  // namespace snug::text
