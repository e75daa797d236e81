#include "text/chat/jinja/syntax/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "text/chat/jinja/syntax/string_literal.h"
#include "text/chat/jinja/values/python_text.h"
#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

using TokenKind = Token::Kind;
constexpr size_t kNowhere = std::string_view::npos;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// The source with "
// " for all line breaks; with `trims_lines`, without the last one.
std::string normalized(std::string_view source, bool trims_lines) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (trims_lines && text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string source, bool trims_lines)
      : source_(std::move(source)), trims_lines_(trims_lines) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) read_data();
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string message) const {
    throw SyntaxError{std::move(message), line_};
  }

  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool follows(std::string_view text) const { return rest().starts_with(text); }

  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  // Moves to byte `end`, which is at the start of a line if the skipped text ends in a line break.
  void advance(size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    if (end > at_) starts_line_ = source_[end - 1] == '\n';
    at_ = end;
  }

  size_t after_spaces(size_t at) const {
    while (at < source_.size()) {
      const CodePoint c = code_point_at(source_, at);
      if (!is_python_space(c.value)) break;
      at += c.size;
    }
    return at;
  }

  // If a tag ends at `from`, returns where: after "-%}" and the following white space, after "+%}",
  // or after "%}" and one line break.
  size_t end_of_tag(size_t from, std::string_view closing, bool trims_line) const {
    const std::string_view text = std::string_view(source_).substr(from);
    if (text.starts_with('-') && text.substr(1).starts_with(closing))
      return after_spaces(from + 1 + closing.size());
    if (trims_line && text.starts_with('+') && text.substr(1).starts_with(closing))
      return from + 1 + closing.size();
    if (!text.starts_with(closing)) return kNowhere;
    const size_t end = from + closing.size();
    return trims_line && trims_lines_ && end < source_.size() && source_[end] == '\n' ? end + 1
                                                                                      : end;
  }

  // Where a tag "{% word %}" with only this word ends.
  size_t end_of_word_tag(size_t at, std::string_view word, bool trims_line) const {
    at = after_spaces(at);
    if (!std::string_view(source_).substr(at).starts_with(word)) return kNowhere;
    return end_of_tag(after_spaces(at + word.size()), "%}", trims_line);
  }

  size_t next_tag() const {
    for (size_t i = source_.find('{', at_); i != kNowhere; i = source_.find('{', i + 1))
      if (i + 1 < source_.size() && std::string_view("{%#").find(source_[i + 1]) != kNowhere)
        return i;
    return kNowhere;
  }

  // Adds the text before a tag, without the white space that the tag removes.
  void push_data(size_t end, char sign, bool strips_line) {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      text = strip(text, Side::right);
    } else if (sign != '+' && strips_line && trims_lines_) {
      const size_t line_break = text.rfind('\n');
      const size_t from = line_break == kNowhere ? 0 : line_break + 1;
      if ((from > 0 || starts_line_) && strip(text.substr(from), Side::both).empty())
        text = text.substr(0, from);
    }
    if (!text.empty()) push(TokenKind::data, std::string(text));
  }

  void read_data() {
    const size_t tag = next_tag();
    if (tag == kNowhere) {
      push(TokenKind::data, std::string(rest()));
      return advance(source_.size());
    }
    const char kind = source_[tag + 1];
    size_t inside = tag + 2;
    char sign = ' ';
    if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+'))
      sign = source_[inside++];
    push_data(tag, sign, kind != '{');
    advance(tag);
    if (kind == '#') return read_comment(inside);
    if (kind == '{') return read_tag(inside, TokenKind::output_begin);
    const size_t raw = end_of_word_tag(inside, "raw", false);
    if (raw != kNowhere) return read_raw(raw);
    read_tag(inside, TokenKind::block_begin);
  }

  void read_comment(size_t inside) {
    advance(inside);
    for (size_t i = inside; i < source_.size(); ++i) {
      const size_t end = end_of_tag(i, "#}", true);
      if (end != kNowhere) return advance(end);
    }
    fail("a comment is not closed");
  }

  // {% raw %}: everything up to {% endraw %} is text.
  void read_raw(size_t inside) {
    advance(inside);
    for (size_t i = source_.find("{%", at_); i != kNowhere; i = source_.find("{%", i + 1)) {
      size_t word = i + 2;
      char sign = ' ';
      if (word < source_.size() && (source_[word] == '-' || source_[word] == '+'))
        sign = source_[word++];
      const size_t end = end_of_word_tag(word, "endraw", true);
      if (end == kNowhere) continue;
      push_data(i, sign, true);
      return advance(end);
    }
    fail("the tag raw is not closed");
  }

  void read_tag(size_t inside, TokenKind begin) {
    const bool is_block = begin == TokenKind::block_begin;
    push(begin, "");
    advance(inside);
    brackets_.clear();
    while (true) {
      advance(after_spaces(at_));
      if (at_ == source_.size())
        fail(is_block ? "a tag '{%' is not closed" : "a tag '{{' is not closed");
      const size_t end =
          brackets_.empty() ? end_of_tag(at_, is_block ? "%}" : "}}", is_block) : kNowhere;
      if (end != kNowhere) {
        push(is_block ? TokenKind::block_end : TokenKind::output_end, "");
        return advance(end);
      }
      read_token();
    }
  }

  void read_token() {
    const char c = source_[at_];
    if (is_digit(c)) return read_number();
    if (is_name_start(c)) return read_name();
    if (c == '\'' || c == '"') return read_text(c);
    read_mark();
  }

  void read_name() {
    size_t end = at_;
    while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
    if (end < source_.size() && static_cast<unsigned char>(source_[end]) >= 0x80)
      fail("names with letters beyond ASCII are not supported");
    push(TokenKind::name, source_.substr(at_, end - at_));
    advance(end);
  }

  // Digits with single underscores between them.
  size_t after_digits(size_t at) const {
    while (at < source_.size() &&
           (is_digit(source_[at]) ||
            (source_[at] == '_' && at + 1 < source_.size() && is_digit(source_[at + 1]))))
      ++at;
    return at;
  }

  void read_number() {
    size_t end = after_digits(at_);
    const char second = at_ + 1 < source_.size() ? source_[at_ + 1] : ' ';
    if (source_[at_] == '0' && std::string_view("bBoOxX").find(second) != kNowhere)
      fail("numbers in base 2, 8 or 16 are not supported");
    bool is_real = false;
    const bool follows_dot = at_ > 0 && source_[at_ - 1] == '.';
    const auto digit_at = [&](size_t i) { return i < source_.size() && is_digit(source_[i]); };
    if (!follows_dot && end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      end = after_digits(end + 1);
      is_real = true;
    }
    if (!follows_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const bool is_signed =
          end + 1 < source_.size() && (source_[end + 1] == '-' || source_[end + 1] == '+');
      if (digit_at(end + 1 + (is_signed ? 1 : 0))) {
        end = after_digits(end + 1 + (is_signed ? 1 : 0));
        is_real = true;
      }
    }
    std::string digits = source_.substr(at_, end - at_);
    std::erase(digits, '_');
    if (!is_real && digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string::npos)
      fail("a number begins with 0");
    push(is_real ? TokenKind::real : TokenKind::integer, std::move(digits));
    advance(end);
  }

  void read_text(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("a text is not closed");
    auto text = unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1));
    if (!text) fail("an escape in a text is broken, or is one by a character's name");
    push(TokenKind::text, std::move(*text));
    advance(end + 1);
  }

  void read_mark() {
    constexpr std::array<std::string_view, 26> kMarks{
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* const mark =
        std::find_if(kMarks.begin(), kMarks.end(), [&](auto known) { return follows(known); });
    if (mark == kMarks.end()) fail(fmt::format("the character '{}' is not expected", character()));
    if (std::string_view("([{").find(mark->front()) != kNowhere) brackets_.push_back(mark->front());
    if (std::string_view(")]}").find(mark->front()) != kNowhere) close_bracket(mark->front());
    push(TokenKind::mark, std::string(*mark));
    advance(at_ + mark->size());
  }

  void close_bracket(char closing) {
    const char opening = closing == ')' ? '(' : closing == ']' ? '[' : '{';
    if (brackets_.empty() || brackets_.back() != opening)
      fail(fmt::format("'{}' is not expected", closing));
    brackets_.pop_back();
  }

  std::string_view character() const { return rest().substr(0, code_point_at(source_, at_).size); }

  const std::string source_;
  const bool trims_lines_;
  std::vector<Token> tokens_;
  std::string brackets_;
  size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, bool trims_lines) {
  if (find_invalid_utf8(source) != std::string_view::npos)
    throw SyntaxError{"the template is not valid UTF-8", 1};
  return Lexer(normalized(source, trims_lines), trims_lines).run();
}

}  // namespace snug::text::jinja
