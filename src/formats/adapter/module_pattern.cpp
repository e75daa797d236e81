#define PCRE2_CODE_UNIT_WIDTH 8
#include "formats/adapter/module_pattern.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <stdexcept>

namespace snug::formats {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Rewrites Python's syntax as PCRE2's. Most of it is the same in both. Escapes and groups that are
// not listed here are refused, since they are an error in one of the two or differ in meaning.
class PatternTranslation {
 public:
  explicit PatternTranslation(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        set();
      } else if (c == '(') {
        group();
      } else if (pattern_.substr(at_).starts_with("{,")) {
        open_interval();
      } else {
        copy(1);
      }
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw std::invalid_argument(
        fmt::format("the regular expression '{}' has {} at byte {}, which is not supported",
                    pattern_, what, at_));
  }

  std::string_view rest() const { return pattern_.substr(at_); }

  void copy(size_t count) {
    result_ += pattern_.substr(at_, count);
    at_ += count;
  }

  void escape(bool in_set) {
    if (at_ + 1 == pattern_.size()) refuse("a '\\' at its end");
    const char c = pattern_[at_ + 1];
    constexpr std::string_view kAlike = "dDwWsStnrfa";
    if (kAlike.find(c) != std::string_view::npos || (!is_letter(c) && !is_digit(c))) return copy(2);
    if (!in_set && (c == 'A' || c == 'b' || c == 'B')) return copy(2);
    if (!in_set && c == 'Z') {
      result_ += "\\z";
      at_ += 2;
      return;
    }
    const bool is_reference = !in_set && c >= '1' && c <= '9' &&
                              (at_ + 2 == pattern_.size() || !is_digit(pattern_[at_ + 2]));
    if (is_reference) return copy(2);
    refuse(fmt::format("'\\{}'", c));
  }

  void set() {
    copy(1);
    if (rest().starts_with('^')) copy(1);
    if (rest().starts_with(']')) copy(1);
    while (!rest().starts_with(']')) {
      if (at_ == pattern_.size()) throw std::invalid_argument(unclosed());
      if (pattern_[at_] == '\\') {
        escape(true);
      } else if (pattern_[at_] == '[') {
        refuse("a '[' in a set");
      } else {
        copy(1);
      }
    }
    copy(1);
  }

  std::string unclosed() const {
    return fmt::format("the regular expression '{}' has a set that is not closed", pattern_);
  }

  void group() {
    if (rest().starts_with("(*")) refuse("'(*'");
    if (!rest().starts_with("(?")) return copy(1);
    for (const std::string_view kind : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?P<", "(?P="})
      if (rest().starts_with(kind)) return copy(kind.size());
    // Python accepts global flags only at the beginning of an expression.
    if (rest().starts_with("(?i:") || (at_ == 0 && rest().starts_with("(?i)"))) return copy(4);
    refuse(fmt::format("'{}'", rest().substr(0, 4)));
  }

  // Python reads {,3} as {0,3}; PCRE2 reads it literally.
  void open_interval() {
    size_t end = at_ + 2;
    while (end < pattern_.size() && is_digit(pattern_[end])) ++end;
    const bool is_interval = end > at_ + 2 && end < pattern_.size() && pattern_[end] == '}';
    if (!is_interval) refuse("'{,'");
    result_ += "{0";
    ++at_;
    copy(end - at_);
  }

  std::string_view pattern_;
  size_t at_ = 0;
  std::string result_;
};

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

void ModulePattern::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

ModulePattern::ModulePattern(const std::string& pattern) : written_(pattern) {
  const std::string translated = PatternTranslation(pattern).run();
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error,
                            &offset, nullptr));
  if (!code_)
    throw std::invalid_argument(
        fmt::format("the regular expression '{}' is not valid: {}", pattern, message_of(error)));
}

bool ModulePattern::matches(std::string_view module) const {
  struct FreeMatch {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  const std::unique_ptr<pcre2_match_data, FreeMatch> block(pcre2_match_data_create(1, nullptr));
  const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(module.data()),
                                module.size(), 0, 0, block.get(), nullptr);
  if (found >= 0) return true;
  if (found == PCRE2_ERROR_NOMATCH) return false;
  throw std::invalid_argument(fmt::format("the regular expression '{}' gave up on '{}': {}",
                                          written_, module, message_of(found)));
}

bool is_module_pattern(std::string_view text) {
  for (const char c : text)
    if (!is_letter(c) && !is_digit(c) && c != '_' && c != '-' && c != '.') return true;
  return false;
}

}  // namespace snug::formats
