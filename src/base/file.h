// Files as Snug touches them: positioned reads that may run in parallel, writes that either
// complete or say why, and text files replaced in one step. Every failure is a UserError that names
// the file, what was being done and, for a full disk, how much was missing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace snug::base {

class UserError;

// An open file descriptor. It can be moved but not copied. Several threads may call read_at and
// write_at at once on distinct buffers; everything else belongs to one thread.
class File {
 public:
  // Refuses pipes, devices and folders without ever waiting for them.
  static File open_for_reading(const std::filesystem::path& path);
  // Opens an empty file for writing, replacing what was there.
  static File create(const std::filesystem::path& path);
  // Opens a file for reading and writing and keeps its contents; creates it when missing.
  static File open_for_update(const std::filesystem::path& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::filesystem::path& path() const { return path_; }
  int64_t size() const;

  // Reads exactly `bytes` bytes from `offset`; a file that ends earlier is an error.
  void read_at(int64_t offset, void* destination, int64_t bytes) const;
  void write_at(int64_t offset, const void* source, int64_t bytes);
  // Allocates `bytes` of disk space now, so that a full disk is noticed before anything is written.
  // Does nothing on file systems that cannot reserve space.
  void reserve(int64_t bytes);
  void truncate(int64_t bytes);
  // Returns when the contents are on the disk.
  void sync();
  // Asks the system to drop the file's pages from its cache; the system may ignore it.
  void drop_cached() const;
  void close();

 private:
  File(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  static File open_for_writing(const std::filesystem::path& path, int flags);
  mode_t mode() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

// The contents of a text file; a file larger than max_bytes is an error.
std::string read_text_file(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 31);

// Replaces `path` by `text`: the text is written to a temporary file, synced and renamed. A failure
// leaves the old file.
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Copies a file in the same way, through a small buffer whatever its size.
void copy_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to);

// Renames over an existing file of the same kind and syncs the directory that holds it.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
void sync_directory(const std::filesystem::path& directory);

// Throws if there is something at `path` that is not a regular file. For callers that do not open
// files through File: opening a pipe would wait for its other end.
void require_regular(const std::filesystem::path& path);

// Whether anything has this name, even a link that leads nowhere.
bool is_there(const std::filesystem::path& path);

// What a symbolic link stands for, even where nothing has that name yet; any other path as it is.
std::filesystem::path followed_link(const std::filesystem::path& path);

// The entries of a folder, in no particular order. Also throws when listing fails midway.
std::vector<std::filesystem::directory_entry> list_folder(const std::filesystem::path& path);

// Throws unless the folder `path` can be created, with its parents, or is there and can be written
// to. Jobs call it before they begin, so that they do not fail at the end.
void require_writable_folder(const std::filesystem::path& path);

// Turns a failed call of std::filesystem into an error about the user's paths.
UserError as_user_error(const std::filesystem::filesystem_error& error);

// "cannot write runs/x/a.bin: No space left on device": the UserError for a failed system call.
[[noreturn]] void throw_system_error(std::string_view action, const std::filesystem::path& path,
                                     int error_number);

}  // namespace snug::base
