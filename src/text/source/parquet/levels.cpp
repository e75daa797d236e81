#include "text/source/parquet/levels.h"

#include <algorithm>

#include "text/source/parquet/compact.h"

namespace snug::text::parquet {

uint64_t BitReader::next(int width) {
  uint64_t value = 0;
  for (int got = 0; got < width;) {
    const size_t index = bit_ / 8;
    if (index >= bytes_.size()) throw Damaged("a page ends within its numbers");
    const int offset = static_cast<int>(bit_ % 8);
    const int take = std::min(8 - offset, width - got);
    const uint64_t bits = (static_cast<uint8_t>(bytes_[index]) >> offset) & ((1U << take) - 1U);
    value |= bits << got;
    got += take;
    bit_ += static_cast<size_t>(take);
  }
  return value;
}

RunReader::RunReader(std::string_view bytes, int width) : bytes_(bytes), width_(width) {
  if (width < 0 || width > 32) throw Damaged("numbers of a page have an unknown width");
}

void RunReader::read_run() {
  uint64_t head = 0;
  for (int shift = 0;; shift += 7) {
    if (at_ == bytes_.size() || shift > 56) throw Damaged("a page ends within its numbers");
    const auto byte = static_cast<uint8_t>(bytes_[at_++]);
    head |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) break;
  }
  is_packed_ = (head & 1) != 0;
  if (is_packed_) {
    // Groups of eight; what the last one has beyond the page's values is never asked for.
    const uint64_t groups = head >> 1;
    left_ = groups * 8;
    const uint64_t bytes =
        std::min<uint64_t>(groups * static_cast<uint64_t>(width_), bytes_.size() - at_);
    bits_ = BitReader(bytes_.substr(at_, bytes));
    at_ += bytes;
  } else {
    left_ = head >> 1;
    value_ = 0;
    for (int i = 0; i < (width_ + 7) / 8; ++i) {
      if (at_ == bytes_.size()) throw Damaged("a page ends within its numbers");
      value_ |= static_cast<uint32_t>(static_cast<uint8_t>(bytes_[at_++])) << (8 * i);
    }
  }
}

uint32_t RunReader::next() {
  while (left_ == 0) read_run();
  --left_;
  return is_packed_ ? static_cast<uint32_t>(bits_.next(width_)) : value_;
}

}  // namespace snug::text::parquet
