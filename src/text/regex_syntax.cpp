// Oniguruma (Ruby syntax) to PCRE2. The engines agree on most syntax; this walks the pattern once
// and rewrites the classes whose members differ, keeps what means the same in both, and refuses
// everything else. Where case is ignored, only ASCII is taken: Oniguruma also matches characters
// with sequences that they fold to (sharp s and ss), PCRE2 never does.
// Sources: Oniguruma doc/RE, pcre2pattern(3).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/regex.h"

namespace snug::text {
namespace {

constexpr std::string_view kWordMembers = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
// Outside of brackets Oniguruma looks Latin-1 characters up in a table of its own, which counts
// superscript digits and fractions as word characters.
constexpr std::string_view kLatinWordMembers = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr std::string_view kHexMembers = "0-9a-fA-F";

// General categories, which both engines name alike.
constexpr std::string_view kCategories =
    " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc "
    "Cf Cn Co Cs ";

// Pairs of ASCII letters that some character folds to.
constexpr std::array<std::string_view, 5> kFoldedPairs = {"ss", "ff", "fi", "fl", "st"};

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// A property's name as Oniguruma compares it: without spaces, hyphens and underscores.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '-' && c != '_') plain += lower(c);
  return plain;
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  std::string run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      const char before = std::exchange(literal_, '\0');
      if (c == '\\') {
        escape();
      } else if (in_class_) {
        class_member(c);
      } else if (c == '[') {
        open_class();
      } else if (c == '(') {
        open_group();
      } else if (c == ')') {
        close_group();
      } else if (c == '{') {
        if (ignores_case_ && is_letter(before)) refuse("a repeated letter where case is ignored");
        interval();
      } else {
        literal(c, before);
      }
    }
    return out_;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw std::invalid_argument(fmt::format(
        "{} in the regular expression '{}' is not supported (at byte {})", what, in_, at_));
  }

  char peek(size_t ahead) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }

  void keep(size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }

  void replace(size_t count, std::string_view by) {
    out_ += by;
    at_ += count;
  }

  // A class written out by its members; outside of brackets it has `more` of them.
  void members(std::string_view list, std::string_view more, bool negated) {
    if (in_class_ && negated) refuse("a negated class inside brackets");
    if (in_class_) return replace(2, list);
    replace(2, fmt::format("[{}{}{}]", negated ? "^" : "", list, more));
  }

  // A character that stands for itself, or an operator.
  void literal(char c, char before) {
    if (ignores_case_) {
      if (static_cast<unsigned char>(c) >= 0x80) refuse_case();
      literal_ = c;
      const std::string pair = {lower(before), lower(c)};
      if (std::find(kFoldedPairs.begin(), kFoldedPairs.end(), pair) != kFoldedPairs.end())
        refuse(fmt::format("'{}' where case is ignored", pair));
    }
    keep(1);
  }

  [[noreturn]] void refuse_case() const {
    refuse("a character outside ASCII where case is ignored");
  }

  void escape() {
    const char c = peek(1);
    switch (c) {
      case 's':
        return replace(2, "\\p{White_Space}");
      case 'S':
        return replace(2, "\\P{White_Space}");
      case 'd':
        return replace(2, "\\p{Nd}");
      case 'D':
        return replace(2, "\\P{Nd}");
      case 'w':
      case 'W':
        return members(kWordMembers, kLatinWordMembers, c == 'W');
      case 'h':
      case 'H':
        return members(kHexMembers, "", c == 'H');
      case 'v':
        return replace(2, "\\x0B");
      case 'p':
      case 'P':
        return property();
      case 'u':
      case 'x':
        return code_point(c);
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return keep(2);
      case 'A':
      case 'z':
      case 'Z':
        if (in_class_) refuse("an anchor inside brackets");
        return keep(2);
      default:
        break;
    }
    const bool is_letter_or_digit =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (is_letter_or_digit || c == '\0') refuse(fmt::format("the escape '\\{}'", c));
    keep(2);
  }

  void property() {
    const size_t close = in_.find('}', at_);
    if (peek(2) != '{' || close == std::string_view::npos) refuse("a property without braces");
    if (ignores_case_) refuse("a property where case is ignored");
    std::string_view name = in_.substr(at_ + 3, close - at_ - 3);
    const bool is_negated = name.starts_with('^');
    if (is_negated) name.remove_prefix(1);
    replace(close + 1 - at_,
            fmt::format("\\{}{{{}{}}}", in_[at_ + 1], is_negated ? "^" : "", property_of(name)));
  }

  // PCRE2 takes a bare name of a script for its script extensions.
  static std::string property_of(std::string_view name) {
    std::string plain = plain_name(name);
    if (plain == "joincontrol") return "Join_Control";
    if (plain == "whitespace" || plain == "space") return "White_Space";
    std::string category = plain;
    if (!category.empty() && is_letter(category[0]))
      category[0] = static_cast<char>(category[0] - 'a' + 'A');
    if (kCategories.find(" " + category + " ") != std::string_view::npos) return category;
    return "sc:" + plain;
  }

  void code_point(char kind) {
    const bool has_braces = kind == 'x' && peek(2) == '{';
    size_t begin = at_ + (has_braces ? 3 : 2);
    size_t end = begin;
    const size_t most = has_braces ? 8 : (kind == 'u' ? 4 : 2);
    while (end < in_.size() && end - begin < most &&
           std::string_view("0123456789abcdefABCDEF").find(in_[end]) != std::string_view::npos)
      ++end;
    const std::string digits(in_.substr(begin, end - begin));
    const bool is_closed = !has_braces || (end < in_.size() && in_[end] == '}');
    if (digits.empty() || !is_closed || (kind == 'u' && digits.size() != 4))
      refuse("a malformed character code");
    if (kind == 'x' && !has_braces && std::stoul(digits, nullptr, 16) >= 0x80) refuse("a raw byte");
    if (ignores_case_ && std::stoul(digits, nullptr, 16) >= 0x80) refuse_case();
    replace(end + (has_braces ? 1U : 0U) - at_, fmt::format("\\x{{{}}}", digits));
  }

  void open_class() {
    in_class_ = true;
    keep(peek(1) == '^' ? 2 : 1);
    if (peek(0) == ']') refuse("an empty class or a class that begins with ']'");
  }

  void class_member(char c) {
    if (c == '[') refuse("a class inside brackets");
    if (c == '&' && peek(1) == '&') refuse("an intersection of classes");
    if (c == ']') in_class_ = false;
    if (ignores_case_ && static_cast<unsigned char>(c) >= 0x80) refuse_case();
    keep(1);
  }

  void open_group() {
    // Elsewhere Ruby gives (?i) a scope of its own.
    if (at_ == 0 && in_.starts_with("(?i)")) {
      ignores_case_ = true;
      return keep(4);
    }
    outer_.push_back(ignores_case_);
    if (peek(1) != '?') return keep(1);
    for (const std::string_view group :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"}) {
      if (!in_.substr(at_).starts_with(group)) continue;
      if (group == "(?i:") ignores_case_ = true;
      if (group == "(?-i:") ignores_case_ = false;
      return keep(group.size());
    }
    refuse("this kind of group");
  }

  void close_group() {
    if (!outer_.empty()) {
      ignores_case_ = outer_.back();
      outer_.pop_back();
    }
    keep(1);
  }

  void interval() {
    const size_t close = in_.find('}', at_);
    if (close == std::string_view::npos || close == at_ + 1) refuse("an unescaped '{'");
    const std::string_view body = in_.substr(at_ + 1, close - at_ - 1);
    if (body.find_first_not_of("0123456789,") != std::string_view::npos) refuse("an unescaped '{'");
    // To Ruby {n,m}+ repeats the interval, to PCRE2 it is possessive.
    if (close + 1 < in_.size() && in_[close + 1] == '+') refuse("an interval followed by '+'");
    // {,m} is {0,m}, which PCRE2 would take literally.
    out_ += fmt::format("{{{}{}}}", body.front() == ',' ? "0" : "", body);
    at_ = close + 1;
  }

  std::string_view in_;
  size_t at_ = 0;
  bool in_class_ = false;
  bool ignores_case_ = false;
  std::vector<bool> outer_;  // whether case is ignored around each open group
  char literal_ = '\0';      // the character just taken, where case is ignored
  std::string out_;
};

}  // namespace

std::string translate_regex(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace snug::text
