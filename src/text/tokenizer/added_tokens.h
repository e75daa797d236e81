// Finds added tokens, such as <|endoftext|>, which are recognised before the text is processed in
// any other way: the leftmost match wins, and among matches at the same place the longest.
// Immutable once built; find may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug::text {

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool special = false;  // left out of decoded text on request
  // Searched for in normalized text instead of the original text.
  bool normalized = false;
  // Matches only if no word character is adjacent.
  bool single_word = false;
  bool lstrip = false;  // includes the white space before it
  bool rstrip = false;  // includes the white space after it
};

// A span of text: an added token (id >= 0) or ordinary text (id -1).
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = -1;
};

// The text that stands for a token: its content, normalized if required.
struct AddedPattern {
  std::string pattern;
  AddedToken token;
};

class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  // No pattern may be empty, and no two may be equal.
  explicit AddedTokenFinder(std::vector<AddedPattern> patterns);

  // The spans of `text` in order, none of them empty. White space that two tokens could include
  // belongs to the first; a second token that would consist of nothing else is left out. Throws
  // UserError if the second token ends within what the first one includes.
  std::vector<TextSpan> find(std::string_view text) const;

  bool empty() const { return entries_.empty(); }

  // Bytes of the longest pattern.
  size_t longest() const { return longest_; }
  // Whether a pattern occurs in `text` such that `position` is inside it or at one of its ends.
  bool touches(std::string_view text, size_t position) const;

 private:
  const AddedPattern* longest_at(std::string_view text, size_t position) const;

  std::vector<AddedPattern> entries_;  // sorted by pattern, so that common prefixes are adjacent
  size_t longest_ = 0;                 // bytes of the longest pattern
  // The first entry whose pattern begins with each byte; the entries end where those of the next
  // byte begin.
  std::array<uint32_t, 257> first_of_byte_{};
};

}  // namespace snug::text
