// A line of program text and its reader. Words are bare (letters, digits and _ . : / -, not
// starting with a digit) or quoted, with \" and \\ escaped. Errors give the place in the file, also
// for a line that was unfolded from a block of layers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug::program {

// A line after unfolding, with the positions of its characters in the file.
struct SourceLine {
  // Characters from this offset of the text on have column `column` and the following ones in the
  // file. Characters that were inserted for a layer's index all have `column` itself.
  struct Place {
    size_t offset = 0;
    int column = 1;
    bool inserted = false;
  };
  std::string text;
  int line = 0;
  std::vector<Place> places;

  int column_of(size_t offset) const;
};

// The word in its printed form: bare where that can be read back, otherwise quoted.
std::string quoted_if_needed(std::string_view word);

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

class LineCursor {
 public:
  LineCursor(const SourceLine& line, const std::string& file) : line_(line), file_(file) {}

  bool at_end();
  // Whether the next character is this one; accept() also consumes it.
  bool peek(char character);
  bool accept(char character);
  void expect(char character, std::string_view where);
  // Whether a word comes next; word() consumes it, or throws with `expected` in the message.
  bool at_word();
  std::string word(std::string_view expected);
  // Consumes the next word if it is this one.
  bool accept_word(std::string_view word);
  int64_t integer(std::string_view expected, int64_t lowest, int64_t highest);
  float number(std::string_view expected);

  size_t position();
  // Throws UserError at an offset, or at the cursor.
  [[noreturn]] void fail_at(size_t offset, const std::string& message) const;
  [[noreturn]] void fail(const std::string& message);
  [[noreturn]] void fail_expected(std::string_view expected);

 private:
  void skip_space();
  std::string quoted_word();
  std::string_view number_token(std::string_view expected);

  const SourceLine& line_;
  const std::string& file_;
  size_t at_ = 0;
};

}  // namespace snug::program
