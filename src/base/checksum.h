// XXH3 of bytes: it finds damage and mix-ups, and is no defence against whoever means to deceive.
// Tensors are hashed in pieces of one fixed size, so that a part of one can be verified alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug::base {

// The last piece of a tensor is shorter. What is read in steps of a multiple of it is hashed while
// it is in the cache.
inline constexpr int64_t kChecksumPieceBytes = int64_t{1} << 20;

uint64_t checksum(const void* data, int64_t bytes);
inline uint64_t checksum(std::string_view text) { return checksum(text.data(), std::ssize(text)); }

// The pieces of so many bytes.
constexpr int64_t checksum_pieces(int64_t bytes) {
  return (bytes + kChecksumPieceBytes - 1) / kChecksumPieceBytes;
}

// Sixteen hexadecimal digits each.
std::string checksum_text(uint64_t checksum);
std::string checksum_text(const std::vector<uint64_t>& checksums);

}  // namespace snug::base
