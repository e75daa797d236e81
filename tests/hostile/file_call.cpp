#include "file_call.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace snug::hostile {
namespace {

namespace fs = std::filesystem;

constexpr int kNone = -1;
constexpr size_t kPageBytes = 4096;

struct Signature {
  int number;
  const char* name;
  int file;          // the argument that is a descriptor: of the file, or of the folder of `path`
  int path = kNone;  // the argument that is a path
  bool moves_bytes = false;
  bool changes = false;
};

#define CALL(name) SYS_##name, #name
const std::vector<Signature> kSignatures{
    {CALL(open), kNone, 0},
    {CALL(openat), 0, 1},
    {CALL(creat), kNone, 0, false, true},
    {CALL(close), 0},
    {CALL(read), 0, kNone, true},
    {CALL(pread64), 0, kNone, true},
    {CALL(write), 0, kNone, true, true},
    {CALL(pwrite64), 0, kNone, true, true},
    {CALL(readv), 0},
    {CALL(writev), 0, kNone, false, true},
    {CALL(mmap), 4},
    {CALL(fsync), 0, kNone, false, true},
    {CALL(fdatasync), 0, kNone, false, true},
    {CALL(ftruncate), 0, kNone, false, true},
    {CALL(fallocate), 0, kNone, false, true},
    {CALL(flock), 0},
    {CALL(fstat), 0},
    {CALL(stat), kNone, 0},
    {CALL(lstat), kNone, 0},
    {CALL(newfstatat), 0, 1},
    {CALL(statx), 0, 1},
    {CALL(access), kNone, 0},
    {CALL(faccessat), 0, 1},
    {CALL(faccessat2), 0, 1},
    {CALL(getdents64), 0},
    {CALL(readlink), kNone, 0},
    {CALL(readlinkat), 0, 1},
    {CALL(rename), kNone, 0, false, true},
    {CALL(renameat), 0, 1, false, true},
    {CALL(renameat2), 0, 1, false, true},
    {CALL(unlink), kNone, 0, false, true},
    {CALL(unlinkat), 0, 1, false, true},
    {CALL(rmdir), kNone, 0, false, true},
    {CALL(mkdir), kNone, 0, false, true},
    {CALL(mkdirat), 0, 1, false, true},
    {CALL(truncate), kNone, 0, false, true},
    {CALL(link), kNone, 0, false, true},
    {CALL(linkat), 0, 1, false, true},
    {CALL(symlink), kNone, 1, false, true},
    {CALL(symlinkat), 1, 2, false, true},
    {CALL(chmod), kNone, 0, false, true},
    {CALL(fchmod), 0, kNone, false, true},
    {CALL(fchmodat), 0, 1, false, true},
    {CALL(copy_file_range), 2, kNone, false, true},
    {CALL(sendfile), 0, kNone, false, true},
};
#undef CALL

using Arguments = std::array<unsigned long long, 6>;

Arguments arguments_of(const user_regs_struct& registers) {
  return {registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9};
}

// A page at a time: what follows the text may not be there.
std::string text_at(pid_t thread, unsigned long long address) {
  const int memory = ::open(fmt::format("/proc/{}/mem", thread).c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  std::array<char, kPageBytes> page{};
  while (memory >= 0 && text.size() < 4 * kPageBytes) {
    const size_t wanted = kPageBytes - address % kPageBytes;
    const ssize_t got = ::pread(memory, page.data(), wanted, static_cast<off_t>(address));
    if (got <= 0) break;
    const auto end = std::find(page.begin(), page.begin() + got, '\0');
    text.append(page.begin(), end);
    if (end != page.begin() + got) break;
    address += static_cast<unsigned long long>(got);
  }
  if (memory >= 0) ::close(memory);
  return text;
}

// Empty where the descriptor is none, or of no file.
fs::path path_of_descriptor(pid_t thread, int descriptor) {
  std::error_code error;
  const std::string where = descriptor == AT_FDCWD
                                ? fmt::format("/proc/{}/cwd", thread)
                                : fmt::format("/proc/{}/fd/{}", thread, descriptor);
  const fs::path path = fs::read_symlink(where, error);
  return error || !path.is_absolute() ? fs::path() : path;
}

fs::path path_of(pid_t thread, const Signature& signature, const Arguments& arguments) {
  const int descriptor = signature.file == kNone
                             ? AT_FDCWD
                             : static_cast<int>(arguments[static_cast<size_t>(signature.file)]);
  if (signature.path == kNone) return path_of_descriptor(thread, descriptor);
  const fs::path text = text_at(thread, arguments[static_cast<size_t>(signature.path)]);
  if (text.is_absolute()) return text.lexically_normal();
  const fs::path folder = path_of_descriptor(thread, descriptor);
  return text.empty() ? folder : (folder / text).lexically_normal();
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const std::vector<int>& file_call_numbers() {
  static const std::vector<int> numbers = [] {
    std::vector<int> all;
    for (const Signature& signature : kSignatures) all.push_back(signature.number);
    return all;
  }();
  return numbers;
}

std::optional<FileCall> file_call_of(pid_t thread, const user_regs_struct& registers) {
  const auto number = static_cast<int>(registers.orig_rax);
  const auto signature = std::find_if(kSignatures.begin(), kSignatures.end(),
                                      [&](const Signature& each) { return each.number == number; });
  if (signature == kSignatures.end()) return std::nullopt;
  const Arguments arguments = arguments_of(registers);
  FileCall call{.name = signature->name,
                .path = path_of(thread, *signature, arguments),
                .moves_bytes = signature->moves_bytes,
                .changes = signature->changes,
                .opens = is_one_of(signature->name, {"open", "openat", "creat"})};
  if (call.path.empty()) return std::nullopt;
  if (call.opens && signature->path != kNone && call.name != "creat") {
    const auto flags = static_cast<int>(arguments[static_cast<size_t>(signature->path) + 1]);
    call.changes = (flags & (O_CREAT | O_TRUNC)) != 0;
  }
  return call;
}

std::vector<int> errors_of(const FileCall& call) {
  std::vector<int> errors;
  if (is_one_of(call.name, {"mmap", "lseek"})) return {ENOMEM};
  if (!is_one_of(call.name, {"flock"})) errors.push_back(EIO);
  if (call.changes && !is_one_of(call.name, {"unlink", "unlinkat", "rmdir", "fchmod"}))
    errors.push_back(ENOSPC);
  const bool is_by_name =
      call.opens ||
      is_one_of(call.name, {"stat", "lstat", "newfstatat", "statx", "access", "faccessat", "rename",
                            "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir",
                            "mkdirat", "readlink", "truncate"});
  if (is_by_name) errors.push_back(EACCES);
  if (call.opens) errors.push_back(EMFILE);
  if (call.opens || call.moves_bytes ||
      is_one_of(call.name, {"fsync", "fdatasync", "ftruncate", "fallocate", "flock", "close"}))
    errors.push_back(EINTR);
  if (call.name == "fallocate") errors.push_back(EOPNOTSUPP);
  if (call.name == "renameat2") errors.push_back(EINVAL);
  if (call.name == "flock") errors.push_back(ENOLCK);
  return errors;
}

}  // namespace snug::hostile
