#include "program/text/text_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"

namespace snug::program {
namespace {

// Words that have a special meaning at the start of a line.
constexpr std::array<std::string_view, 3> kReserved{"program", "tensor", "layer"};

bool starts_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool continues_word(char c) {
  return starts_word(c) || is_digit(c) || c == '.' || c == ':' || c == '/' || c == '-';
}

bool is_bare(std::string_view word) {
  return !word.empty() && starts_word(word[0]) &&
         std::all_of(word.begin(), word.end(), continues_word) &&
         std::find(kReserved.begin(), kReserved.end(), word) == kReserved.end();
}

}  // namespace

int SourceLine::column_of(size_t offset) const {
  int column = static_cast<int>(offset) + 1;
  for (const Place& place : places) {
    if (place.offset > offset) break;
    column = place.column + (place.inserted ? 0 : static_cast<int>(offset - place.offset));
  }
  return column;
}

std::string quoted_if_needed(std::string_view word) {
  if (is_bare(word)) return std::string(word);
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n')
      quoted += "\\n";
    else
      quoted += c;
  }
  return quoted + '"';
}

void LineCursor::skip_space() {
  while (at_ < line_.text.size() && (line_.text[at_] == ' ' || line_.text[at_] == '\t')) ++at_;
}

size_t LineCursor::position() {
  skip_space();
  return at_;
}

bool LineCursor::at_end() { return position() == line_.text.size(); }

bool LineCursor::peek(char character) { return !at_end() && line_.text[at_] == character; }

bool LineCursor::accept(char character) {
  if (!peek(character)) return false;
  ++at_;
  return true;
}

void LineCursor::expect(char character, std::string_view where) {
  if (!accept(character)) fail_expected(fmt::format("'{}' {}", character, where));
}

bool LineCursor::at_word() {
  return !at_end() && (line_.text[at_] == '"' || starts_word(line_.text[at_]));
}

std::string LineCursor::word(std::string_view expected) {
  if (!at_word()) fail_expected(expected);
  if (line_.text[at_] == '"') return quoted_word();
  const size_t begin = at_;
  while (at_ < line_.text.size() && continues_word(line_.text[at_])) ++at_;
  return line_.text.substr(begin, at_ - begin);
}

std::string LineCursor::quoted_word() {
  const size_t begin = at_++;
  std::string word;
  while (at_ < line_.text.size() && line_.text[at_] != '"') {
    char c = line_.text[at_++];
    if (c == '\\') {
      if (at_ == line_.text.size()) break;
      c = line_.text[at_++];
      if (c == 'n') c = '\n';
    }
    word += c;
  }
  if (at_ == line_.text.size()) fail_at(begin, "this quoted name is not closed");
  ++at_;
  return word;
}

bool LineCursor::accept_word(std::string_view expected) {
  const size_t begin = position();
  if (!at_word() || line_.text[at_] == '"') return false;
  if (word(expected) == expected) return true;
  at_ = begin;
  return false;
}

std::string_view LineCursor::number_token(std::string_view expected) {
  const size_t begin = position();
  while (at_ < line_.text.size() && (continues_word(line_.text[at_]) || line_.text[at_] == '+'))
    ++at_;
  if (at_ == begin) fail_expected(expected);
  return std::string_view(line_.text).substr(begin, at_ - begin);
}

int64_t LineCursor::integer(std::string_view expected, int64_t lowest, int64_t highest) {
  const size_t begin = position();
  const std::string_view token = number_token(expected);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error == std::errc::invalid_argument || end != token.data() + token.size())
    fail_at(begin, fmt::format("expected {}, found '{}'", expected, token));
  if (error == std::errc::result_out_of_range || value < lowest || value > highest)
    fail_at(begin,
            fmt::format("expected {} from {} to {}, found {}", expected, lowest, highest, token));
  return value;
}

float LineCursor::number(std::string_view expected) {
  const size_t begin = position();
  const std::string_view token = number_token(expected);
  float value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc{} || end != token.data() + token.size())
    fail_at(begin, fmt::format("expected {}, found '{}'", expected, token));
  return value;
}

void LineCursor::fail_at(size_t offset, const std::string& message) const {
  throw base::UserError(message, {file_, line_.line, line_.column_of(offset)});
}

void LineCursor::fail(const std::string& message) { fail_at(position(), message); }

void LineCursor::fail_expected(std::string_view expected) {
  if (at_end()) fail(fmt::format("expected {}, found the end of the line", expected));
  fail(fmt::format("expected {}, found '{}'", expected, line_.text[at_]));
}

}  // namespace snug::program
