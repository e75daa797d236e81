#include "formats/gguf/byte_reader.h"

#include <algorithm>

#include "base/error.h"

namespace snug::formats {

void ByteReader::require(uint64_t count, int64_t each, std::string_view what) const {
  if (count <= static_cast<uint64_t>(left() / each)) return;
  base::throw_user_error(
      "{}: at byte {} the file claims {} {}, for which the {} bytes that are left are too few; it "
      "was cut off or is damaged, download or copy it again",
      file_.path().string(), position_, count, what, left());
}

void ByteReader::read(void* destination, size_t bytes, std::string_view what) {
  if (static_cast<int64_t>(bytes) > left())
    base::throw_user_error(
        "{}: the file ends at byte {} within {}; it was cut off, download or copy it again",
        file_.path().string(), size_, what);
  auto* to = static_cast<char*>(destination);
  while (bytes > 0) {
    int64_t within = position_ - buffer_begin_;
    if (within >= std::ssize(buffer_)) {
      buffer_.resize(static_cast<size_t>(std::min(kBufferBytes, left())));
      file_.read_at(position_, buffer_.data(), std::ssize(buffer_));
      buffer_begin_ = position_;
      within = 0;
    }
    const size_t now = std::min(bytes, buffer_.size() - static_cast<size_t>(within));
    std::memcpy(to, buffer_.data() + within, now);
    to += now;
    bytes -= now;
    position_ += static_cast<int64_t>(now);
  }
}

std::string ByteReader::text(std::string_view what, uint64_t most) {
  const auto length = value<uint64_t>(what);
  require(length, 1, fmt::format("bytes of {}", what));
  if (length > most)
    base::throw_user_error(
        "{}: at byte {} the file has {} of {} bytes, more than the {} that the format allows; it "
        "is "
        "damaged, download or copy it again",
        file_.path().string(), position_, what, length, most);
  std::string text(static_cast<size_t>(length), '\0');
  read(text.data(), text.size(), what);
  return text;
}

}  // namespace snug::formats
