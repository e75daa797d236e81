// Tokens that are recognised in the text before anything else happens to it, such as
// <|endoftext|>: the leftmost match wins, among those the longest. Immutable once built; find may
// be called from any thread.
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
  bool special = false;      // left out of decoded text on request
  bool normalized = false;   // looked for in normalized text, otherwise in the original
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
};

// A span of text: an added token (id >= 0) or ordinary text (id -1).
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = -1;
};

// What stands for a token in the text: its content, normalized where it must be.
struct AddedPattern {
  std::string pattern;
  AddedToken token;
};

class AddedTokenFinder {
 public:
  AddedTokenFinder() = default;
  // No pattern is empty, and no two are the same.
  explicit AddedTokenFinder(std::vector<AddedPattern> patterns);

  // The spans of `text`, ordered, never empty. White space that two tokens could take belongs to
  // the first, and a second that is nothing else is left out. Throws UserError where the second
  // ends within what the first took.
  std::vector<TextSpan> find(std::string_view text) const;

  bool empty() const { return entries_.empty(); }

  // Bytes of the longest pattern.
  size_t longest() const { return longest_; }
  // Whether a pattern stands in `text` with the place `position` within it or at one of its ends.
  bool touches(std::string_view text, size_t position) const;

 private:
  const AddedPattern* longest_at(std::string_view text, size_t position) const;

  std::vector<AddedPattern> entries_;  // sorted by pattern, so that those with one beginning adjoin
  size_t longest_ = 0;                 // bytes of the longest pattern
  // Where those that begin with a byte begin; those of the next byte begin where they end.
  std::array<uint32_t, 257> first_of_byte_{};
};

}  // namespace snug::text
