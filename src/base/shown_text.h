// Escapes text that Snug prints but did not write: names, fields and templates from files that it
// was given. Control characters, characters that change the direction of writing, and bytes that
// are not UTF-8 could disturb a terminal; they become \u001b and \xff, which JSON also reads back.
// Line breaks and tabs are kept. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace snug::base {

std::string shown_text(std::string_view text);

// Only escapes NULs: the text of an exception would end at the first one.
std::string with_shown_nuls(std::string text);

// Escapes one line, leaving out its middle where it takes more than `most` bytes. Makes no heap
// allocation.
class ShownLine {
 public:
  static constexpr size_t kMostBytes = size_t{16} << 10;  // more than a whole plan takes
  explicit ShownLine(std::string_view text, size_t most = kMostBytes) noexcept;
  std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  void add(std::string_view text) noexcept;
  // Both return how many bytes of the text they took: the first from its beginning, the second from
  // its end.
  size_t add_beginning(std::string_view text, size_t most) noexcept;
  static size_t bytes_of_end(std::string_view text, size_t most) noexcept;

  std::array<char, kMostBytes> bytes_;
  size_t size_ = 0;
};

}  // namespace snug::base
