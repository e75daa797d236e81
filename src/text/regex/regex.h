// Regular expressions of tokenizer files: written for Oniguruma (Ruby syntax), run by PCRE2.
// Syntax that the two engines read differently is translated or refused, never run as it is.
// A compiled Regex is immutable; find_all may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace snug::text {

// A half-open byte range of some text.
struct Range {
  size_t begin = 0;
  size_t end = 0;
};

class Regex {
 public:
  // Throws std::invalid_argument, saying what is wrong or not supported.
  explicit Regex(const std::string& pattern);

  // Matches exactly `text`.
  static Regex literal(std::string_view text);

  // Replaces `matches` by the matches in `text` (valid UTF-8), left to right, not overlapping. A
  // match may be empty, except right after another; an empty text has none.
  // Throws UserError where matching exceeds the engine's limits.
  void find_all(std::string_view text, std::vector<Range>& matches) const;

  // Finds matches in a text that more text follows: only those that are matches whatever follows.
  // Returns where the next one may begin at the earliest.
  size_t find_certain(std::string_view text, std::vector<Range>& matches) const;

  // Whether a match depends on what stands before it, as an empty one depends on the match before.
  // Else matching may begin again wherever a match ended.
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

// The PCRE2 pattern that means what `pattern` means to Oniguruma. Throws std::invalid_argument
// where there is none: backreferences, inline options other than i, what is no ASCII and classes
// put together of others where case is ignored, possessive intervals, escapes outside the lists in
// regex_syntax.cpp and regex_reader.cpp.
std::string translate_regex(std::string_view pattern);

}  // namespace snug::text
