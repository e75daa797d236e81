// Bytes that are read once from front to back: those of a file, what a compressed file holds, or
// text that is made of a table. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace snug::text {

class ByteStream {
 public:
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  virtual ~ByteStream() = default;

  // Puts the next bytes into `piece`, in place of what it holds: at most about kPieceBytes, or a
  // row of a table that is longer. False at the end. Throws UserError for a file that is damaged.
  virtual bool next(std::string& piece) = 0;

  static constexpr int64_t kPieceBytes = int64_t{64} << 10;
};

// The bytes of the file as they are; of a file whose name ends in .gz or .zst, those that it holds.
// Throws UserError where it cannot be opened.
std::unique_ptr<ByteStream> open_stream(const std::string& path);

// What such a stream holds in memory at most: of zstd the window that the file was packed with, at
// most 128 MiB, and 8 MiB at least.
int64_t stream_bytes(const std::string& path);

}  // namespace snug::text
