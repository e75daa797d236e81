#include "base/spill_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>

#include "base/byte_size.h"
#include "base/cache_folder.h"
#include "base/error.h"

namespace snug::base {
namespace {

namespace fs = std::filesystem;

// A new file without a name in `folder`, for which so many bytes are reserved; nothing, with the
// reason in `why`, where the folder accepts none.
std::optional<File> open_in(const fs::path& folder, int64_t bytes, std::string& why) {
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  std::string name = (folder / "data-XXXXXX").string();
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) {
    why += fmt::format("; {}: {}", folder.string(), std::strerror(errno));
    return std::nullopt;
  }
  ::close(descriptor);
  File file = File::open_for_update(name);
  ::unlink(name.c_str());
  // Where a file system cannot reserve, this is what tells.
  const fs::space_info space = fs::space(folder, ignored);
  const auto available = static_cast<int64_t>(std::min<uintmax_t>(
      space.available, static_cast<uintmax_t>(std::numeric_limits<int64_t>::max())));
  if (!ignored && available < bytes) {
    why += fmt::format("; {}: {} are needed, and {} are free", folder.string(),
                       readable_byte_size(bytes), readable_byte_size(available));
    return std::nullopt;
  }
  file.reserve(bytes);
  return file;
}

File open_file(int64_t bytes) {
  std::string why;
  for (const fs::path& folder : {cache_folder(), fs::path("/var/tmp")})
    if (std::optional<File> file = open_in(folder, bytes, why)) return std::move(*file);
  throw_user_error(
      "no folder takes the file for what is kept on the disk meanwhile{}; set XDG_CACHE_HOME to a "
      "folder on a disk with room",
      why);
}

}  // namespace

void SpillFile::reserve(int64_t bytes) {
  SNUG_CHECK(!file_ && buffer_.empty(), "space is reserved before anything is appended");
  if (bytes > kBufferBytes) file_ = open_file(bytes);
}

void SpillFile::append(const void* bytes, int64_t size) {
  const auto* from = static_cast<const char*>(bytes);
  while (size > 0) {
    if (static_cast<int64_t>(buffer_.size()) == kBufferBytes) flush();
    const int64_t piece = std::min(size, kBufferBytes - static_cast<int64_t>(buffer_.size()));
    buffer_.insert(buffer_.end(), from, from + piece);
    from += piece;
    size -= piece;
  }
}

void SpillFile::flush() {
  if (!file_) file_ = open_file(0);
  file_->write_at(written_, buffer_.data(), static_cast<int64_t>(buffer_.size()));
  written_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
}

void SpillFile::finish() {
  if (file_) flush();
  buffer_.shrink_to_fit();
}

void SpillFile::read_at(int64_t offset, void* to, int64_t size) const {
  SNUG_CHECK(offset >= 0 && size >= 0 && offset + size <= this->size(), "bytes {} + {} of {}",
             offset, size, this->size());
  const int64_t of_file = std::clamp<int64_t>(written_ - offset, 0, size);
  if (of_file > 0) file_->read_at(offset, to, of_file);
  const int64_t begin = std::max<int64_t>(0, offset - written_);
  std::copy_n(buffer_.begin() + begin, size - of_file, static_cast<char*>(to) + of_file);
}

}  // namespace snug::base
