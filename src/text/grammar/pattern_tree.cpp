#include "text/grammar/pattern_tree.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "text/grammar/pattern_escape.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

// The reader calls itself for a group; real expressions nest far less.
constexpr int kMaxGroups = 100;
constexpr int64_t kMaxRepeats = 1'000'000'000;

using PatternKind = Pattern::Kind;

class PatternTreeReader {
 public:
  explicit PatternTreeReader(std::string_view expression) : in_{.in = expression} {
    if (find_invalid_utf8(expression) != std::string_view::npos)
      refuse_pattern("", "what is not UTF-8", find_invalid_utf8(expression));
  }

  Pattern run() {
    read_flags();
    Pattern all = choice(0);
    if (!in_.is_done()) in_.refuse("a ')' that closes nothing");
    return all;
  }

 private:
  static Pattern made(PatternKind kind, size_t at) { return {.kind = kind, .at = at}; }
  Pattern of_set(CodePointSet set, size_t at) const {
    Pattern one = made(PatternKind::set, at);
    if (in_.ignores_case) set = with_other_cases(set);
    if (set.empty()) refuse_pattern(in_.in, "a class of no characters", at);
    one.set = std::move(set);
    return one;
  }

  // (?ims) at the very beginning.
  void read_flags() {
    if (!in_.in.starts_with("(?")) return;
    size_t end = 2;
    while (std::string_view("aimsu").find(in_.peek(end)) != std::string_view::npos &&
           in_.peek(end) != '\0')
      ++end;
    if (end == 2 || in_.peek(end) != ')') return;
    for (size_t i = 2; i < end; ++i) set_flag(in_.peek(i), true);
    in_.at = end + 1;
  }

  void set_flag(char flag, bool value) {
    if (flag == 'i') in_.ignores_case = value;
    if (flag == 's') dot_is_all_ = value;
    if (flag == 'a') in_.is_ascii = value;
    if (flag == 'u') in_.is_ascii = !value;
    if (flag == 'm') in_.refuse("the flag m, by which ^ and $ match at lines,");
  }

  Pattern choice(int depth) {
    if (depth > kMaxGroups) in_.refuse("a group within so many others");
    Pattern one = made(PatternKind::choice, in_.at);
    one.parts.push_back(sequence(depth));
    while (in_.peek(0) == '|') {
      ++in_.at;
      one.parts.push_back(sequence(depth));
    }
    return one.parts.size() == 1 ? std::move(one.parts.front()) : one;
  }

  Pattern sequence(int depth) {
    Pattern one = made(PatternKind::sequence, in_.at);
    while (!in_.is_done() && in_.peek(0) != '|' && in_.peek(0) != ')')
      one.parts.push_back(repeated(atom(depth)));
    return one.parts.size() == 1 ? std::move(one.parts.front()) : one;
  }

  Pattern atom(int depth) {
    const size_t at = in_.at;
    switch (in_.peek(0)) {
      case '(':
        return group(depth);
      case '[':
        return of_set(read_pattern_class(in_), at);
      case '\\':
        return escape();
      case '^':
        ++in_.at;
        return made(PatternKind::begin, at);
      case '$':
        ++in_.at;
        return made(PatternKind::end, at);
      case '.':
        ++in_.at;
        return of_set((dot_is_all_ ? CodePointSet() : CodePointSet('\n', '\n')).complement(), at);
      case '*':
      case '+':
      case '?':
        in_.refuse("a repetition of nothing");
      default:
        break;
    }
    const char32_t value = read_pattern_character(in_);
    return of_set({value, value}, at);
  }

  Pattern escape() {
    const size_t at = in_.at;
    const char letter = in_.peek(1);
    if (letter == 'A' || letter == 'Z' || letter == 'z') {
      in_.at += 2;
      return made(letter == 'A' ? PatternKind::begin : PatternKind::end, at);
    }
    return of_set(read_pattern_escape(in_).set, at);
  }

  Pattern group(int depth) {
    const size_t at = in_.at;
    const bool ignored_case = in_.ignores_case;
    const bool dot_was_all = dot_is_all_;
    const bool was_ascii = in_.is_ascii;
    open_group();
    Pattern inner = choice(depth + 1);
    if (in_.peek(0) != ')' || in_.is_done()) refuse_pattern(in_.in, "a '(' that is not closed", at);
    ++in_.at;
    in_.ignores_case = ignored_case;
    dot_is_all_ = dot_was_all;
    in_.is_ascii = was_ascii;
    return inner;
  }

  void open_group() {
    const std::string_view rest = in_.in.substr(in_.at);
    if (!rest.starts_with("(?")) {
      ++in_.at;
      return;
    }
    for (const auto& [opening, name] : {std::pair{"(?=", "a lookahead"},
                                        {"(?!", "a lookahead"},
                                        {"(?<=", "a lookbehind"},
                                        {"(?<!", "a lookbehind"},
                                        {"(?>", "an atomic group"},
                                        {"(?(", "a condition"},
                                        {"(?P=", "a back reference"},
                                        {"(?#", "a comment"}})
      if (rest.starts_with(opening)) in_.refuse(name);
    if (rest.starts_with("(?P<") || rest.starts_with("(?<")) {
      const size_t end = rest.find('>');
      if (end == std::string_view::npos) in_.refuse("a group whose name does not end");
      in_.at += end + 1;
      return;
    }
    in_.at += 2;
    for (bool value = true; in_.peek(0) != ':'; ++in_.at) {
      if (in_.peek(0) == '-' && value)
        value = false;
      else if (std::string_view("aimsu").find(in_.peek(0)) == std::string_view::npos ||
               in_.is_done())
        in_.refuse("this sort of group");
      else
        set_flag(in_.peek(0), value);
    }
    ++in_.at;
  }

  Pattern repeated(Pattern atom) {
    std::optional<std::pair<int64_t, int64_t>> counts = repetition();
    if (!counts) return atom;
    const size_t at = in_.at;
    if (in_.peek(0) == '?') ++in_.at;  // what is chosen first does not change what matches
    if (in_.peek(0) == '+') in_.refuse("a possessive repetition");
    if (repetition()) refuse_pattern(in_.in, "a repetition of a repetition", at);
    if (atom.kind == PatternKind::begin || atom.kind == PatternKind::end)
      refuse_pattern(in_.in, "a repeated anchor", atom.at);
    Pattern one = made(PatternKind::repeat, atom.at);
    one.least = counts->first;
    one.most = counts->second;
    one.parts.push_back(std::move(atom));
    return one;
  }

  std::optional<std::pair<int64_t, int64_t>> repetition() {
    const char c = in_.is_done() ? '\0' : in_.peek(0);
    if (c == '*' || c == '+' || c == '?') {
      ++in_.at;
      return std::pair<int64_t, int64_t>{c == '+' ? 1 : 0, c == '?' ? 1 : Pattern::kNoLimit};
    }
    if (c != '{') return std::nullopt;
    return interval();
  }

  // {3}, {3,}, {,5} and {3,5}; other braces stand for themselves.
  std::optional<std::pair<int64_t, int64_t>> interval() {
    const size_t begin = in_.at;
    ++in_.at;
    const std::optional<int64_t> least = number();
    const bool has_comma = in_.peek(0) == ',';
    if (has_comma) ++in_.at;
    const std::optional<int64_t> most = has_comma ? number() : least;
    if (in_.peek(0) != '}' || (!least && !has_comma)) {
      in_.at = begin;
      return std::nullopt;
    }
    ++in_.at;
    if (least && most && *most < *least)
      refuse_pattern(in_.in, "a repetition whose most is below its least", begin);
    return std::pair{least.value_or(0), most.value_or(Pattern::kNoLimit)};
  }

  std::optional<int64_t> number() {
    std::optional<int64_t> value;
    for (; in_.peek(0) >= '0' && in_.peek(0) <= '9'; ++in_.at) {
      value = value.value_or(0) * 10 + (in_.peek(0) - '0');
      if (*value > kMaxRepeats) in_.refuse("a repetition of so many times");
    }
    return value;
  }

  PatternText in_;
  bool dot_is_all_ = false;
};

}  // namespace

Pattern read_pattern_tree(std::string_view expression) {
  return PatternTreeReader(expression).run();
}

void refuse_pattern(std::string_view expression, std::string_view what, size_t at) {
  const std::string_view beginning = first_bytes(expression, 200);
  throw std::invalid_argument(
      fmt::format("the regular expression '{}{}' has {} at byte {}, to which no answer can be held",
                  beginning, beginning.size() < expression.size() ? "..." : "", what, at));
}

}  // namespace snug::text
