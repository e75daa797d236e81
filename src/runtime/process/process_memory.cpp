#include "runtime/process/process_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

namespace snug::runtime {
namespace {

// Parses "VmRSS:     1234 kB" to bytes.
int64_t field_bytes(std::string_view status, std::string_view name) {
  const size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  const size_t digits = status.find_first_of("0123456789", at);
  int64_t kilobytes = 0;
  std::from_chars(status.data() + digits, status.data() + status.size(), kilobytes);
  return kilobytes * 1024;
}

// What code, thread stacks and libraries add after planning where nothing is rehearsed: when
// quantising a folder, and for the host's part of a job on a GPU.
constexpr int64_t kLibraryBytes = 4 << 20;

}  // namespace

int64_t outside_bytes() {
  release_freed_memory();
  return process_memory().resident_bytes + kLibraryBytes;
}

ProcessMemory process_memory() {
  // Called within steps, so it uses a buffer on the stack and no heap.
  std::array<char, 4096> buffer{};
  const int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t size = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  if (size <= 0) return {};
  const std::string_view status(buffer.data(), static_cast<size_t>(size));
  return {field_bytes(status, "VmRSS:"), field_bytes(status, "VmHWM:")};
}

void release_freed_memory() { ::malloc_trim(0); }

}  // namespace snug::runtime
