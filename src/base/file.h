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

// An open file descriptor. Moves, never copies. read_at and write_at may be called from several
// threads at once on distinct buffers; everything else belongs to one thread.
class File {
 public:
  // Pipes, devices and folders are refused, and never waited for.
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

  // Reads exactly `bytes` bytes from `offset`; a file that ends before is an error.
  void read_at(int64_t offset, void* destination, int64_t bytes) const;
  void write_at(int64_t offset, const void* source, int64_t bytes);
  // Takes `bytes` of disk now, so that a full disk shows before anything is written. File systems
  // that cannot promise space are left alone.
  void reserve(int64_t bytes);
  void truncate(int64_t bytes);
  // Returns when the contents are on the disk.
  void sync();
  // Asks the system to forget what it has cached of the file, which is no promise that it does.
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

// The whole of a text file; larger than max_bytes is an error.
std::string read_text_file(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 31);

// Replaces `path` by `text`: written to path.tmp, synced, renamed. A failure leaves the old file.
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Copies a file in the same way, through a small buffer whatever its size.
void copy_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to);

// Renames over an existing file of the same kind and syncs the directory that holds it.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
void sync_directory(const std::filesystem::path& directory);

// Throws where there is something at `path` that is no regular file. For those that open it in
// another way than File: opening a pipe waits for its other end.
void require_regular(const std::filesystem::path& path);

// Whether anything has this name, be it a link that leads nowhere.
bool is_there(const std::filesystem::path& path);

// What is in a folder, in no order. Throws also where listing breaks off on the way.
std::vector<std::filesystem::directory_entry> list_folder(const std::filesystem::path& path);

// Throws unless a folder can be made at `path`, with those above it, or written to where it is
// there already: what a job writes at its end is looked at before its beginning.
void require_writable_folder(const std::filesystem::path& path);

// What a failed call of std::filesystem is for the user, whose paths it was about.
UserError as_user_error(const std::filesystem::filesystem_error& error);

// "cannot write runs/x/a.bin: No space left on device": the UserError for a failed system call.
[[noreturn]] void throw_system_error(std::string_view action, const std::filesystem::path& path,
                                     int error_number);

}  // namespace snug::base
