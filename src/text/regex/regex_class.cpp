#include "text/regex/regex_class.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/regex/regex_property.h"

namespace snug::text {
namespace {

constexpr int kMaxDepth = 64;  // keeps the stack small; real patterns nest far less

// One operand of &&: the union of everything in it.
class ClassUnion {
 public:
  explicit ClassUnion(const RegexReader& reader) : reader_(reader) {}

  void add_character(char32_t value) {
    if (state_ == State::range) {
      if (value < first_) reader_.refuse("a range that ends before it begins");
      members_ += fmt::format("{}-{}", literal_character(first_), literal_character(value));
      state_ = State::complete;
      return;
    }
    flush();
    first_ = value;
    state_ = State::character;
  }

  // Adds \w and similar classes, and POSIX brackets.
  void add_named(CharacterSet set) {
    if (state_ == State::range) reader_.refuse("a range that ends with a class");
    add(std::move(set));
    state_ = State::named;
  }

  void add_class(CharacterSet set) {
    if (state_ == State::range) reader_.refuse("a range that ends with a class");
    add(std::move(set));
    state_ = State::complete;
  }

  // Adds a hyphen: between two characters it makes a range, elsewhere it stands for itself. `ends`:
  // the operand ends after it.
  void add_hyphen(bool ends) {
    if (state_ == State::character && !ends) {
      state_ = State::range;
    } else if (state_ == State::named && !ends) {
      reader_.refuse("a range that begins with a class");
    } else {
      add_character('-');
    }
  }

  CharacterSet finish() {
    flush();
    if (!members_.empty()) sets_.insert(sets_.begin(), set_of(members_));
    return unite(sets_);
  }

 private:
  enum class State { start, character, named, range, complete };

  void add(CharacterSet set) {
    flush();
    if (reader_.ignores_case && !set.is_plain())
      reader_.refuse("a negated class inside brackets where case is ignored");
    sets_.push_back(std::move(set));
  }

  void flush() {
    if (state_ == State::character) members_ += literal_character(first_);
  }

  const RegexReader& reader_;
  State state_ = State::start;
  char32_t first_ = 0;  // read last; a - after it makes it the begin of a range
  std::string members_;
  std::vector<CharacterSet> sets_;
};

// Reads [:name:] or [:^name:]; nothing if the bracket opens a class.
std::optional<CharacterSet> read_bracket_name(RegexReader& reader) {
  if (reader.peek(1) != ':') return std::nullopt;
  size_t close = reader.at + 2;
  while (close < reader.in.size() && reader.in[close] != ']')
    close += reader.in[close] == '\\' ? 2 : 1;
  if (close >= reader.in.size()) return std::nullopt;
  std::string_view name = reader.in.substr(reader.at + 2, close - reader.at - 2);
  if (!name.ends_with(':') || name.ends_with("\\:")) return std::nullopt;
  name.remove_suffix(1);
  const bool is_negated = name.starts_with('^');
  if (is_negated) name.remove_prefix(1);
  auto set = bracket_set(name);
  if (!set) reader.refuse(fmt::format("the POSIX bracket '[:{}:]'", name));
  if (reader.ignores_case) reader.refuse("a POSIX bracket where case is ignored");
  reader.at = close + 1;
  return is_negated ? complement(std::move(*set)) : std::move(*set);
}

void read_class_escape(RegexReader& reader, ClassUnion& members) {
  if (const auto escape = read_escape(reader, true)) {
    if (escape->character) return members.add_character(*escape->character);
    return members.add_named(escape->set);
  }
  const char c = reader.peek(1);
  if ((c >= '0' && c <= '7') || c == 'c' || c == 'C' || c == 'M' ||
      (c == 'o' && reader.peek(2) == '{'))
    reader.refuse(fmt::format("the escape '\\{}' inside brackets", c));
  reader.at += 2;
  // Other letters stand for themselves here, and \b is a backspace.
  members.add_character(c == 'b' ? U'\b' : static_cast<char32_t>(c));
}

CharacterSet read_nested_class(RegexReader& reader, int depth);

// Reads what a '[' inside a class opens.
void read_nested(RegexReader& reader, int depth, ClassUnion& members) {
  if (auto named = read_bracket_name(reader)) return members.add_named(std::move(*named));
  members.add_class(read_nested_class(reader, depth + 1));
}

bool at_intersection(const RegexReader& reader, size_t ahead) {
  return reader.peek(ahead) == '&' && reader.peek(ahead + 1) == '&';
}

// Reads an operand up to '&&' or ']'.
CharacterSet read_operand(RegexReader& reader, int depth, bool is_first) {
  ClassUnion members(reader);
  // A ']' at the very beginning stands for itself.
  if (is_first && reader.peek(0) == ']') members.add_character(read_character(reader));
  while (reader.peek(0) != ']' && !at_intersection(reader, 0)) {
    if (reader.is_done()) reader.refuse("a class that does not end");
    const char c = reader.peek(0);
    if (c == '\\') {
      read_class_escape(reader, members);
    } else if (c == '[') {
      read_nested(reader, depth, members);
    } else if (c == '-') {
      ++reader.at;
      members.add_hyphen(reader.peek(0) == ']' || at_intersection(reader, 0));
    } else {
      members.add_character(read_character(reader));
    }
  }
  return members.finish();
}

CharacterSet read_nested_class(RegexReader& reader, int depth) {
  if (depth > kMaxDepth) reader.refuse("a class within so many others");
  ++reader.at;
  const bool is_negated = reader.peek(0) == '^';
  if (is_negated) ++reader.at;
  std::vector<CharacterSet> operands = {read_operand(reader, depth, true)};
  while (at_intersection(reader, 0)) {
    if (reader.ignores_case) reader.refuse("an intersection of classes where case is ignored");
    reader.at += 2;
    operands.push_back(read_operand(reader, depth, false));
  }
  ++reader.at;
  CharacterSet set = intersect(operands);
  return is_negated ? complement(std::move(set)) : set;
}

}  // namespace

CharacterSet read_class(RegexReader& reader) { return read_nested_class(reader, 1); }

}  // namespace snug::text
