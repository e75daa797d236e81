#include "nccl_links.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "block_fibers.h"

namespace snug::cuda_emulator {

namespace {
constexpr size_t kQueueBytes = size_t{1} << 16;
}

// Zeros at first, as a new file is.
struct NcclLinks::Queue {
  std::atomic<uint64_t> pushed;
  std::atomic<uint64_t> pulled;
  std::byte data[kQueueBytes];
};
struct NcclLinks::Shared {
  std::atomic<int> joined;
  std::atomic<int> finalized;
};

NcclLinks::NcclLinks(const std::string& name, int ranks)
    : path_("/dev/shm/snug-emulated-nccl-" + name), ranks_(ranks) {
  bytes_ = sizeof(Queue) * (1 + static_cast<size_t>(ranks) * static_cast<size_t>(ranks));
  const int file = ::open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes_)) != 0)
    fail("memory that ranks share cannot be made");
  void* data = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (data == MAP_FAILED) fail("memory that ranks share cannot be mapped");
  shared_ = static_cast<Shared*>(data);
}

NcclLinks::~NcclLinks() {
  forget_name();
  ::munmap(shared_, bytes_);
}

std::atomic<int>& NcclLinks::joined() { return shared_->joined; }
std::atomic<int>& NcclLinks::finalized() { return shared_->finalized; }
void NcclLinks::forget_name() { ::unlink(path_.c_str()); }

NcclLinks::Queue& NcclLinks::queue(int from, int to) {
  return reinterpret_cast<Queue*>(shared_)[1 + from * ranks_ + to];
}

size_t NcclLinks::push(int from, int to, const std::byte* data, size_t bytes) {
  Queue& all = queue(from, to);
  const uint64_t begin = all.pushed.load(std::memory_order_relaxed);
  const uint64_t room = kQueueBytes - (begin - all.pulled.load(std::memory_order_acquire));
  const size_t count = std::min<size_t>(bytes, room);
  for (size_t done = 0; done < count;) {
    const size_t place = (begin + done) % kQueueBytes;
    const size_t now = std::min(count - done, kQueueBytes - place);
    std::memcpy(all.data + place, data + done, now);
    done += now;
  }
  all.pushed.store(begin + count, std::memory_order_release);
  return count;
}

size_t NcclLinks::pull(int from, int to, std::byte* data, size_t bytes) {
  Queue& all = queue(from, to);
  const uint64_t begin = all.pulled.load(std::memory_order_relaxed);
  const size_t count = std::min<size_t>(bytes, all.pushed.load(std::memory_order_acquire) - begin);
  for (size_t done = 0; done < count;) {
    const size_t place = (begin + done) % kQueueBytes;
    const size_t now = std::min(count - done, kQueueBytes - place);
    std::memcpy(data + done, all.data + place, now);
    done += now;
  }
  all.pulled.store(begin + count, std::memory_order_release);
  return count;
}

}  // namespace snug::cuda_emulator
