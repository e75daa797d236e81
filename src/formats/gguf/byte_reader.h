// Reads little-endian values from a file, front to back, through a buffer of its own.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/file.h"

namespace snug::formats {

class ByteReader {
 public:
  explicit ByteReader(const base::File& file) : file_(file), size_(file.size()) {}

  int64_t position() const { return position_; }
  int64_t size() const { return size_; }
  int64_t left() const { return size_ - position_; }

  // Each throws UserError where the file ends before; `what` says what was to be read.
  template <typename T>
  T value(std::string_view what) {
    static_assert(std::endian::native == std::endian::little);
    std::array<std::byte, sizeof(T)> bytes{};
    read(bytes.data(), sizeof(T), what);
    return std::bit_cast<T>(bytes);
  }
  // A length of 8 bytes, and so many bytes. `most`: longer ones are refused.
  std::string text(std::string_view what, uint64_t most);
  // Throws UserError unless `count` things of at least `each` bytes fit into what is left.
  void require(uint64_t count, int64_t each, std::string_view what) const;

 private:
  void read(void* destination, size_t bytes, std::string_view what);

  static constexpr int64_t kBufferBytes = int64_t{1} << 16;
  const base::File& file_;
  int64_t size_ = 0;
  int64_t position_ = 0;
  std::string buffer_;
  int64_t buffer_begin_ = 0;  // where in the file the buffer begins
};

}  // namespace snug::formats
