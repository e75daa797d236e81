#include "base/file.h"

#include "base/damaged_file.h"
#include "base/temporary_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace snug::base {
namespace {

// Linux transfers at most 0x7ffff000 bytes per call; pieces of 64 MiB keep several readers
// interleaved.
constexpr int64_t kPieceBytes = int64_t{64} << 20;
constexpr size_t kCopyBufferBytes = size_t{256} << 10;

int open_descriptor(const std::filesystem::path& path, int flags, std::string_view action) {
  while (true) {
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (descriptor >= 0) return descriptor;
    if (errno != EINTR) throw_system_error(action, path, errno);
  }
}

// What a path is where it is not a regular file.
std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

[[noreturn]] void throw_no_file(std::string_view action, const std::filesystem::path& path,
                                mode_t mode) {
  throw_user_error(
      "cannot {} {}: this is {}, not a file. Snug reads files, in any order; save "
      "what it gives in one",
      action, path.string(), kind_of(mode));
}

template <typename Write>
void replace_file(const std::filesystem::path& path, const Write& write) {
  const std::filesystem::path temporary = temporary_for(path);
  try {
    File file = File::create(temporary);
    write(file);
    file.sync();
    file.close();
    rename_durably(temporary, path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw;
  }
}

// Then it may be at a temporary path. What is to be read or removed is where its path says.
bool makes_what_it_names(std::string_view action) {
  return action == "write" || action == "create" || action == "sync" || action == "truncate" ||
         action.starts_with("reserve ");
}

std::string_view advice_for(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space on this disk or write to another one";
    case EFBIG:
      return "; the file size limit of this process (ulimit -f) or file system is too small";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; check the permissions of the file and of its folder";
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
      return "; check the path";
    case ELOOP:
      return "; a symbolic link leads back to itself";
    default:
      return "";
  }
}

// The component of `path` directly below `above`; `above` itself where the two are the same.
std::filesystem::path first_below(const std::filesystem::path& above,
                                  const std::filesystem::path& path) {
  const std::filesystem::path rest = path.lexically_relative(above);
  if (rest.empty() || rest == ".") return above;
  return above / *rest.begin();
}

// Space that was reserved on the disk but never written reads as NULs. Refuses such a file,
// whatever its size.
void refuse_unwritten(const File& file, int64_t bytes) {
  std::array<char, 64> begin{};
  const auto looked = std::min<int64_t>(bytes, std::ssize(begin));
  file.read_at(0, begin.data(), looked);
  const bool has_byte = std::any_of(begin.begin(), begin.end(), [](char c) { return c != 0; });
  if (looked > 0 && !has_byte)
    throw_user_error(
        "{} begins with {} NUL bytes, so it holds no text: was it written or downloaded whole? "
        "Copy or download it again",
        file.path().string(), looked);
}

}  // namespace

void require_regular(const std::filesystem::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw_no_file("read", path, status.st_mode);
}

bool is_there(const std::filesystem::path& path) {
  return std::filesystem::exists(std::filesystem::symlink_status(path));
}

std::filesystem::path followed_link(const std::filesystem::path& path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::filesystem::path followed = path;
  std::error_code error;
  for (int links = 0; links < kMostLinks; ++links) {
    if (!followed.has_filename()) followed = followed.parent_path();  // "runs/x/"
    if (!std::filesystem::is_symlink(followed, error)) return followed;
    const std::filesystem::path target = std::filesystem::read_symlink(followed, error);
    if (error) break;
    followed = followed.parent_path() / target;  // an absolute target replaces all
  }
  return path;
}

std::vector<std::filesystem::directory_entry> list_folder(const std::filesystem::path& path) {
  std::vector<std::filesystem::directory_entry> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator each(path, error), end; !error && each != end;
       each.increment(error))
    entries.push_back(*each);
  if (error) throw_system_error("list", path, error.value());
  return entries;
}

void require_writable_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path above = path.empty() ? "." : std::filesystem::absolute(path, error);
  while (std::filesystem::status(above, error).type() == std::filesystem::file_type::not_found &&
         above.has_relative_path())
    above = above.parent_path();
  if (error) throw_system_error("create", path, error.value());
  if (!std::filesystem::is_directory(above, error))
    throw_user_error("cannot create {}: {} is a file; choose another folder", path.string(),
                     above.string());
  if (::access(above.c_str(), W_OK | X_OK) != 0) throw_system_error("write into", above, errno);
  // Some file systems (such as /proc) report write permission and then refuse, so only creating a
  // folder tells.
  const std::filesystem::path first = first_below(above, std::filesystem::absolute(path, error));
  if (first == above) return;
  if (::mkdir(first.c_str(), 0777) != 0) {
    if (errno != EEXIST) throw_system_error("create", first, errno);
  } else {
    ::rmdir(first.c_str());
  }
}

UserError as_user_error(const std::filesystem::filesystem_error& error) {
  std::string paths = error.path1().string();
  if (!error.path2().empty()) paths += fmt::format(" or {}", error.path2().string());
  const int number = error.code().value();
  return UserError(
      fmt::format("cannot use {}: {}{}", paths, std::strerror(number), advice_for(number)));
}

void throw_system_error(std::string_view action, const std::filesystem::path& path,
                        int error_number) {
  const std::string name = makes_what_it_names(action) ? name_of_written(path) : path.string();
  throw UserError(fmt::format("cannot {} {}: {}{}", action, name, std::strerror(error_number),
                              advice_for(error_number)));
}

// Opening does not block, as it would for the other end of a pipe; anything but a regular file is
// refused afterwards.
File File::open_for_reading(const std::filesystem::path& path) {
  require_regular(path);
  File file(path, open_descriptor(path, O_RDONLY, "read"));
  if (const mode_t mode = file.mode(); !S_ISREG(mode)) throw_no_file("read", path, mode);
  return file;
}

// Devices may be written to: they take the bytes or report an error.
File File::open_for_writing(const std::filesystem::path& path, int flags) {
  File file(path, open_descriptor(path, O_RDWR | O_CREAT | flags, "write"));
  if (const mode_t mode = file.mode(); S_ISFIFO(mode)) throw_no_file("write", path, mode);
  return file;
}

File File::create(const std::filesystem::path& path) { return open_for_writing(path, O_TRUNC); }

File File::open_for_update(const std::filesystem::path& path) { return open_for_writing(path, 0); }

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t File::size() const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) throw_system_error("read", path_, errno);
  return status.st_size;
}

mode_t File::mode() const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) throw_system_error("read", path_, errno);
  return status.st_mode;
}

void File::read_at(int64_t offset, void* destination, int64_t bytes) const {
  auto* to = static_cast<char*>(destination);
  int64_t done = 0;
  while (done < bytes) {
    const auto piece = static_cast<size_t>(std::min(bytes - done, kPieceBytes));
    const ssize_t got = ::pread(descriptor_, to + done, piece, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EIO)
      throw DamagedFile(fmt::format(
          "cannot read {} from its byte {} on: {}; the disk fails there, use another copy",
          path_.string(), offset + done, std::strerror(EIO)));
    if (got < 0) throw_system_error("read", path_, errno);
    if (got == 0)
      throw_user_error(
          "{} ends at byte {}, but {} bytes were expected from byte {} on; the file is truncated "
          "or "
          "was changed while it was read, copy or download it again",
          path_.string(), offset + done, bytes, offset);
    done += got;
  }
}

void File::write_at(int64_t offset, const void* source, int64_t bytes) {
  const auto* from = static_cast<const char*>(source);
  int64_t done = 0;
  while (done < bytes) {
    const auto piece = static_cast<size_t>(std::min(bytes - done, kPieceBytes));
    const ssize_t put = ::pwrite(descriptor_, from + done, piece, offset + done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_system_error("write", path_, errno);
    done += put;
  }
}

void File::reserve(int64_t bytes) {
  if (bytes == 0) return;
  while (::fallocate(descriptor_, 0, 0, bytes) != 0) {
    if (errno == EINTR) continue;
    // Not every file system can reserve space, and devices and pipes have none to reserve.
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV || errno == ESPIPE) return;
    throw_system_error(fmt::format("reserve {} bytes for", bytes), path_, errno);
  }
}

void File::truncate(int64_t bytes) {
  while (::ftruncate(descriptor_, bytes) != 0)
    if (errno != EINTR) throw_system_error("truncate", path_, errno);
}

void File::sync() {
  while (::fsync(descriptor_) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == EROFS) return;  // devices and pipes have nothing to sync
    throw_system_error("write", path_, errno);
  }
}

void File::drop_cached() const { ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED); }

void File::close() {
  // The descriptor is closed even when close() fails, and network file systems report a full disk
  // here.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    throw_system_error("write", path_, errno);
}

std::string read_text_file(const std::filesystem::path& path, int64_t max_bytes) {
  const File file = File::open_for_reading(path);
  const int64_t bytes = file.size();
  if (bytes > max_bytes)
    throw_user_error("{} has {} bytes, more than the {} that such a file may have", path.string(),
                     bytes, max_bytes);
  refuse_unwritten(file, bytes);
  std::string text(static_cast<size_t>(bytes), '\0');
  file.read_at(0, text.data(), bytes);
  return text;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  replace_file(
      path, [&](File& file) { file.write_at(0, text.data(), static_cast<int64_t>(text.size())); });
}

void copy_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to) {
  const File source = File::open_for_reading(from);
  replace_file(to, [&](File& file) {
    std::vector<char> buffer(kCopyBufferBytes);
    const int64_t bytes = source.size();
    for (int64_t done = 0; done < bytes;) {
      const int64_t piece = std::min(bytes - done, static_cast<int64_t>(buffer.size()));
      source.read_at(done, buffer.data(), piece);
      file.write_at(done, buffer.data(), piece);
      done += piece;
    }
  });
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return sync_directory(to.parent_path());
  const int error_number = errno;
  if (name_of_written(from) != from.string()) throw_system_error("write", to, error_number);
  throw_system_error(fmt::format("rename {} to", from.string()), to, error_number);
}

void sync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory.empty() ? "." : directory;
  const int descriptor = open_descriptor(path, O_RDONLY | O_DIRECTORY, "sync");
  int result = ::fsync(descriptor);
  while (result != 0 && errno == EINTR) result = ::fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  // Some network file systems cannot sync a directory; the rename is as durable as they make it.
  if (result != 0 && error_number != EINVAL && error_number != EROFS)
    throw_system_error("sync", path, error_number);
}

}  // namespace snug::base
