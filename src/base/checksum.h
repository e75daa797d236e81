// XXH3 checksums. They detect damage and mix-ups, but are no defence against deliberate forgery.
// Tensors are hashed in pieces of one fixed size, so that a part of a tensor can be verified alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct XXH3_state_s;

namespace snug::base {

// The last piece of a tensor is shorter.
inline constexpr int64_t kChecksumPieceBytes = int64_t{1} << 20;

uint64_t checksum(const void* data, int64_t bytes);
inline uint64_t checksum(std::string_view text) { return checksum(text.data(), std::ssize(text)); }

// The checksum of bytes that arrive in parts. All memory is allocated in the constructor.
class ChecksumStream {
 public:
  ChecksumStream();
  void add(const void* data, int64_t bytes);
  // Both return the checksum of what was added since the last take(); take() then starts anew.
  uint64_t value() const;
  uint64_t take();

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

// The number of pieces that this many bytes have.
constexpr int64_t checksum_pieces(int64_t bytes) {
  return (bytes + kChecksumPieceBytes - 1) / kChecksumPieceBytes;
}

// Each checksum as sixteen hexadecimal digits.
std::string checksum_text(uint64_t checksum);
std::string checksum_text(const std::vector<uint64_t>& checksums);

}  // namespace snug::base
