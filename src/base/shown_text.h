// Text that Snug prints and did not write: names, fields and templates of files that it was given.
// Control characters, characters that turn the direction of writing, and bytes that are no UTF-8
// would do things to a terminal, and stand as \u001b and \xff, which JSON reads back as well. Line
// breaks and tabs stay. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace snug::base {

std::string shown_text(std::string_view text);

// With NULs as they are shown: the text of an exception ends at the first one.
std::string with_shown_nuls(std::string text);

// The same, of which the middle is left out where it takes more than `most` bytes. Makes no heap
// allocation.
class ShownLine {
 public:
  static constexpr size_t kMostBytes = size_t{16} << 10;  // what a whole plan takes, and more
  explicit ShownLine(std::string_view text, size_t most = kMostBytes) noexcept;
  std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  void add(std::string_view text) noexcept;
  // Both return how many bytes of the text they took: from its beginning, and of its end.
  size_t add_beginning(std::string_view text, size_t most) noexcept;
  static size_t bytes_of_end(std::string_view text, size_t most) noexcept;

  std::array<char, kMostBytes> bytes_;
  size_t size_ = 0;
};

}  // namespace snug::base
