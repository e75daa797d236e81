#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/python_pattern.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <stdexcept>

namespace snug::base {
namespace {

constexpr size_t kShownBytes = 200;  // of a text on which a pattern gave up

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
    if (const size_t flags = flags_length(); flags > 0) return copy(flags);
    refuse(fmt::format("'{}'", rest().substr(0, 4)));
  }

  // The length of a group of flags that both engines read alike: ignoring case, lines, and a dot
  // that is any character. Python accepts global flags only at the beginning of an expression.
  size_t flags_length() const {
    size_t end = 2;
    while (end < rest().size() &&
           std::string_view("ims").find(rest()[end]) != std::string_view::npos)
      ++end;
    if (end == 2 || end == rest().size()) return 0;
    return rest()[end] == ':' || (at_ == 0 && rest()[end] == ')') ? end + 1 : 0;
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

std::string pattern_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string text_of_group(std::string_view text, const PCRE2_SIZE* bounds) {
  if (bounds[0] == PCRE2_UNSET) return {};
  return std::string(text.substr(bounds[0], bounds[1] - bounds[0]));
}

}  // namespace

PythonPattern::PythonPattern(const std::string& pattern, Where where) : written_(pattern) {
  const std::string translated = PatternTranslation(pattern).run();
  const uint32_t ends = where == Where::whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0;
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                            PCRE2_UTF | PCRE2_UCP | ends, &error, &offset, nullptr),
              pcre2_code_free);
  if (!code_)
    throw std::invalid_argument(fmt::format("the regular expression '{}' is not valid: {}", pattern,
                                            pattern_message(error)));
}

// After an empty match the next one must not be empty at the same place, as in Python from 3.7 on.
std::vector<PythonPattern::Found> PythonPattern::found_in(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> block(
      pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(block.get());
  const uint32_t groups = pcre2_get_ovector_count(block.get());
  std::vector<Found> all;
  uint32_t options = 0;
  for (size_t at = 0; at <= text.size();) {
    const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), at, options, block.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      throw std::invalid_argument(fmt::format("the regular expression '{}' gave up on '{}': {}",
                                              written_, text.substr(0, kShownBytes),
                                              pattern_message(found)));
    Found one{.begin = bounds[0], .end = bounds[1], .texts = {}};
    for (uint32_t group = 0; group < groups; ++group)
      one.texts.push_back(text_of_group(text, bounds + 2 * group));
    options = one.begin == one.end ? PCRE2_NOTEMPTY_ATSTART : 0;
    at = one.end;
    all.push_back(std::move(one));
  }
  return all;
}

bool PythonPattern::matches(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> block(pcre2_match_data_create(1, nullptr));
  const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                0, 0, block.get(), nullptr);
  if (found >= 0) return true;
  if (found == PCRE2_ERROR_NOMATCH) return false;
  throw std::invalid_argument(fmt::format("the regular expression '{}' gave up on '{}': {}",
                                          written_, text.substr(0, kShownBytes),
                                          pattern_message(found)));
}

std::vector<PythonPattern::Match> PythonPattern::find_all(std::string_view text) const {
  std::vector<Match> matches;
  for (Found& found : found_in(text)) matches.push_back(std::move(found.texts));
  return matches;
}

std::string PythonPattern::replace_all(std::string_view text, std::string_view with) const {
  std::string result;
  size_t at = 0;
  for (const Found& found : found_in(text)) {
    result += text.substr(at, found.begin - at);
    result += with;
    at = found.end;
  }
  return result += text.substr(at);
}

}  // namespace snug::base
