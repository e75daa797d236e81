// Bytes that are appended once and read often, of which the process holds a fixed number: the
// first kBufferBytes stay in memory; beyond that all lie in a file without a name, which is gone
// when the object is, however the process ends. Only pages of the system's cache remember them
// then, which are no memory of the process.
// Filled by one thread, then read by any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/file.h"

namespace snug::base {

class SpillFile {
 public:
  // 64 Ki ids: large enough that writing costs nothing next to tokenizing, small next to the rest.
  static constexpr int64_t kBufferBytes = int64_t{256} << 10;

  // Throws UserError where the disk is full or no folder takes the file: the cache folder
  // (cache_folder.h) first, then /var/tmp; not /tmp, which often is memory.
  void append(const void* bytes, int64_t size);

  // Call once all bytes are in: gives back memory that is not needed to read.
  void finish();

  int64_t size() const { return written_ + static_cast<int64_t>(buffer_.size()); }

  // Reads exactly `size` bytes from `offset`, which were appended before. Allocates nothing.
  // Throws UserError where the disk fails.
  void read_at(int64_t offset, void* to, int64_t size) const;

  // Exactly what the object holds in memory.
  int64_t host_bytes() const { return static_cast<int64_t>(buffer_.capacity()); }

 private:
  void flush();

  std::optional<File> file_;  // none while everything fits the buffer
  int64_t written_ = 0;       // to the file
  std::vector<char> buffer_;  // what follows it
};

}  // namespace snug::base
