// The system calls that touch files, as a stopped process is about to make them. Linux on x86-64.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace snug::hostile {

struct FileCall {
  std::string name;            // "openat"
  std::filesystem::path path;  // of the file that it touches; of two the first
  bool moves_bytes = false;    // a read or a write, whose third argument counts them
  bool changes = false;        // writes, makes, removes or renames
  bool opens = false;
};

// Numbers of all calls that file_call_of knows.
const std::vector<int>& file_call_numbers();

// The call of the registers; nothing where its file has no name (a pipe, memory).
std::optional<FileCall> file_call_of(pid_t thread, const user_regs_struct& registers);

// The errors that a file system may answer this call with.
std::vector<int> errors_of(const FileCall& call);

}  // namespace snug::hostile
