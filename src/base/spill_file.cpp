#include "base/spill_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/cache_folder.h"
#include "base/error.h"

namespace snug::base {
namespace {

namespace fs = std::filesystem;

// A new file without a name in `folder`; nothing, with the reason in `why`, where the folder
// accepts none.
std::optional<File> open_in(const fs::path& folder, std::string& why) {
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
  return file;
}

File open_file() {
  std::string why;
  for (const fs::path& folder : {cache_folder(), fs::path("/var/tmp")})
    if (std::optional<File> file = open_in(folder, why)) return std::move(*file);
  throw_user_error(
      "no folder takes the file that the data's tokens are kept in{}; set XDG_CACHE_HOME to a "
      "folder on a disk",
      why);
}

}  // namespace

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
  if (!file_) file_ = open_file();
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
