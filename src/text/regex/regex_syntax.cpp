// Translates Oniguruma (Ruby syntax) to PCRE2. The engines agree on most syntax; this goes through
// the pattern once and rewrites what differs (classes, escapes, intervals), keeps what means the
// same in both, and refuses everything else. When case is ignored, only ASCII is supported:
// Oniguruma also matches characters with the sequences to which they fold (sharp s and ss), and
// PCRE2 never does. Sources: Oniguruma doc/RE, pcre2pattern(3).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/regex/regex.h"
#include "text/regex/regex_class.h"
#include "text/regex/regex_property.h"
#include "text/regex/regex_reader.h"

namespace snug::text {
namespace {

// Pairs of ASCII letters to which some single character folds.
constexpr std::array<std::string_view, 5> kFoldedPairs = {"ss", "ff", "fi", "fl", "st"};

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// A place where a word begins or ends, or its opposite. PCRE2's \b is not used, as it has another
// set of word characters.
std::string word_boundary(bool is_boundary) {
  const std::string word = word_set(false).pattern();
  return is_boundary ? fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word)
                     : fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word);
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : reader_{pattern} {}

  std::string run() {
    while (!reader_.is_done()) {
      const char c = reader_.peek(0);
      const char before = std::exchange(literal_, '\0');
      if (c == '\\') {
        escape(before);
      } else if (c == '[') {
        out_ += read_class(reader_).pattern();
      } else if (c == '(') {
        open_group();
      } else if (c == ')') {
        close_group();
      } else if (c == '{') {
        if (reader_.ignores_case && is_letter(before))
          reader_.refuse("a repeated letter where case is ignored");
        interval();
      } else {
        if (reader_.ignores_case) note_literal(static_cast<unsigned char>(c), before);
        keep(1);
      }
    }
    return out_;
  }

 private:
  void keep(size_t count) {
    out_ += reader_.in.substr(reader_.at, count);
    reader_.at += count;
  }

  void replace(size_t count, std::string_view by) {
    out_ += by;
    reader_.at += count;
  }

  // Checks a literal character or an operator when case is ignored.
  void note_literal(char32_t character, char before) {
    if (character >= 0x80) reader_.refuse("a character outside ASCII where case is ignored");
    literal_ = static_cast<char>(character);
    const std::string pair = {lower(before), lower(literal_)};
    if (std::find(kFoldedPairs.begin(), kFoldedPairs.end(), pair) != kFoldedPairs.end())
      reader_.refuse(fmt::format("'{}' where case is ignored", pair));
  }

  void escape(char before) {
    if (const auto escape = read_escape(reader_, false)) {
      if (!escape->character) {
        out_ += escape->set.pattern();
        return;
      }
      if (reader_.ignores_case) note_literal(*escape->character, before);
      out_ += literal_character(*escape->character);
      return;
    }
    const char c = reader_.peek(1);
    switch (c) {
      case 'A':
      case 'z':
      case 'Z':
        return keep(2);
      case 'b':
      case 'B':
        return replace(2, word_boundary(c == 'b'));
      case 'R':
        return replace(2, "(?>\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])");
      case 'N':
        return replace(2, "[^\\n]");
      case 'O':
        return replace(2, "\\p{Any}");
      default:
        reader_.refuse(fmt::format("the escape '\\{}'", c));
    }
  }

  void open_group() {
    // Only at the beginning, since elsewhere Ruby gives (?i) a scope of its own.
    if (reader_.at == 0 && reader_.in.starts_with("(?i)")) {
      reader_.ignores_case = true;
      return keep(4);
    }
    outer_.push_back(reader_.ignores_case);
    if (reader_.peek(1) != '?') return keep(1);
    for (const std::string_view group :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"}) {
      if (!reader_.in.substr(reader_.at).starts_with(group)) continue;
      if (group == "(?i:") reader_.ignores_case = true;
      if (group == "(?-i:") reader_.ignores_case = false;
      return keep(group.size());
    }
    reader_.refuse("this kind of group");
  }

  void close_group() {
    if (!outer_.empty()) {
      reader_.ignores_case = outer_.back();
      outer_.pop_back();
    }
    keep(1);
  }

  void interval() {
    const std::string_view in = reader_.in;
    const size_t close = in.find('}', reader_.at);
    if (close == std::string_view::npos || close == reader_.at + 1)
      reader_.refuse("an unescaped '{'");
    const std::string_view body = in.substr(reader_.at + 1, close - reader_.at - 1);
    if (body.find_first_not_of("0123456789,") != std::string_view::npos)
      reader_.refuse("an unescaped '{'");
    // In Ruby {n,m}+ repeats the interval; in PCRE2 it is possessive.
    if (close + 1 < in.size() && in[close + 1] == '+')
      reader_.refuse("an interval followed by '+'");
    // {,m} means {0,m}, but PCRE2 would read it literally.
    out_ += fmt::format("{{{}{}}}", body.front() == ',' ? "0" : "", body);
    reader_.at = close + 1;
  }

  RegexReader reader_;
  std::vector<bool> outer_;  // for each open group: whether case is ignored around it
  char literal_ = '\0';      // the character just read, when case is ignored
  std::string out_;
};

}  // namespace

std::string translate_regex(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace snug::text
