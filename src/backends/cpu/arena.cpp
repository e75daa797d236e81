#include "backends/cpu/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

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
  // Of the pages that the kernel says are resident.
  int64_t allocated_bytes() const override;

 private:
  void* data_;
  int64_t bytes_;
};

int64_t MappedArena::allocated_bytes() const {
  const int64_t page = sysconf(_SC_PAGESIZE);
  std::array<unsigned char, 4096> resident{};
  const int64_t most = page * static_cast<int64_t>(resident.size());
  int64_t found = 0;
  for (int64_t first = 0; first < bytes_; first += most) {
    const int64_t bytes = std::min(most, bytes_ - first);
    // Every page was touched, so where the kernel does not answer they are taken to be there.
    if (mincore(data() + first, static_cast<size_t>(bytes), resident.data()) != 0) return bytes_;
    for (int64_t offset = 0; offset < bytes; offset += page)
      if ((resident[static_cast<size_t>(offset / page)] & 1U) != 0)
        found += std::min(page, bytes - offset);
  }
  return found;
}

// Writes one byte a page; the kernel may have populated them already.
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
  // Large pages spare the matrix products a third of their TLB misses; refusal is no error.
  madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  touch(static_cast<std::byte*>(data), bytes);
  return std::make_unique<MappedArena>(space, data, bytes);
}

}  // namespace snug::backends::cpu
