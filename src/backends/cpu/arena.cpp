#include "backends/cpu/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/available_memory.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

class MappedArena : public Arena {
 public:
  MappedArena(program::Space space, void* data, int64_t bytes)
      : Arena(space), data_(data), bytes_(bytes) {}
  ~MappedArena() override {
    if (bytes_ > 0) munmap(data_, static_cast<size_t>(bytes_));
  }
  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  int64_t bytes() const override { return bytes_; }
  // The bytes of the pages that the kernel reports as resident.
  std::optional<int64_t> allocated_bytes() const override { return resident_bytes(data(), bytes_); }

 private:
  void* data_;
  int64_t bytes_;
};

// Writes one byte per page; the kernel may have populated some already.
void touch(std::byte* data, int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  for (int64_t offset = 0; offset < bytes; offset += page)
    *const_cast<volatile std::byte*>(data + offset) = std::byte{0};
}

}  // namespace

std::unique_ptr<Arena> map_arena(program::Space space, int64_t bytes) {
  if (bytes == 0) return std::make_unique<MappedArena>(space, nullptr, 0);
  const int64_t available = base::available_memory_bytes();
  constexpr double kMebibyte = 1 << 20;
  if (bytes > available)
    base::throw_user_error(
        "The job's {} memory is {:.1f} MiB and the system has {:.1f} MiB left. Close other "
        "programs, "
        "or set device_memory to what is free and let 'snug plan' name the cheapest change.",
        program::name_of(space), static_cast<double>(bytes) / kMebibyte,
        static_cast<double>(available) / kMebibyte);
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    base::throw_user_error(
        "The system refused {:.1f} MiB of {} memory: {}. Lower max_length or the micro-batch, or "
        "raise the process's memory limit.",
        static_cast<double>(bytes) / kMebibyte, program::name_of(space), std::strerror(errno));
  // Huge pages save matrix products a third of their TLB misses; it is no error if they are
  // refused.
  madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  touch(static_cast<std::byte*>(data), bytes);
  return std::make_unique<MappedArena>(space, data, bytes);
}

}  // namespace snug::backends::cpu
