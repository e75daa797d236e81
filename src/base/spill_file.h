// Bytes that are appended once and read often, of which the process holds only a fixed number: the
// first kBufferBytes stay in memory; beyond that everything lies in a file without a name, which
// disappears with the object, however the process ends. Then only the system's page cache holds the
// bytes, which is not counted as memory of the process. One thread appends; any thread may read
// afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/file.h"

namespace snug::base {

class SpillFile {
 public:
  // Room for 64 Ki token ids: large enough that writing costs little compared with tokenizing, and
  // small compared with the rest of the process.
  static constexpr int64_t kBufferBytes = int64_t{256} << 10;

  // Takes the disk space for what will be appended, where it does not stay in memory, so that a
  // full disk is noticed before the work begins. Throws as append does.
  void reserve(int64_t bytes);

  // Throws UserError where the disk is full or no folder accepts the file. The cache folder
  // (cache_folder.h) is tried first, then /var/tmp; /tmp is not, since it is often in memory.
  void append(const void* bytes, int64_t size);

  // Call it once all bytes are appended: it frees memory that reading does not need.
  void finish();

  int64_t size() const { return written_ + static_cast<int64_t>(buffer_.size()); }

  // Reads exactly `size` bytes from `offset`; they must have been appended before. Allocates
  // nothing. Throws UserError where the disk fails.
  void read_at(int64_t offset, void* to, int64_t size) const;

  // The exact number of bytes that the object holds in memory.
  int64_t host_bytes() const { return static_cast<int64_t>(buffer_.capacity()); }

 private:
  void flush();

  std::optional<File> file_;  // empty while everything fits in the buffer
  int64_t written_ = 0;       // bytes in the file
  std::vector<char> buffer_;  // the bytes after those in the file
};

}  // namespace snug::base
