#include "device_memory.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <utility>

#include "unfinished_writes.h"

namespace snug::cuda_emulator {
namespace {

struct Regions {
  std::mutex mutex;
  std::map<void*, size_t> bytes_at;
  int accesses = 0;
};

Regions& regions() {
  static Regions all;
  return all;
}

// Of this thread: queues that it works off, and whether it keeps an access for them.
thread_local int queues = 0;
thread_local bool keeps_access = false;

void protect(const Regions& all, int protection) {
  for (const auto& [data, bytes] : all.bytes_at) mprotect(data, bytes, protection);
}

void end_access() {
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  if (--all.accesses == 0) protect(all, PROT_NONE);
}

}  // namespace

void* allocate_device_memory(size_t bytes) {
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  const int protection = all.accesses > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  // Pages that are never touched cost nothing, however many they are.
  void* data = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  all.bytes_at.emplace(data, bytes);
  return data;
}

void free_device_memory(void* data) {
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  const auto found = all.bytes_at.find(data);
  if (found == all.bytes_at.end()) return;
  forget_unfinished(data, found->second);
  munmap(data, found->second);
  all.bytes_at.erase(found);
}

size_t allocated_device_bytes() {
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  size_t sum = 0;
  for (const auto& [data, bytes] : all.bytes_at) sum += bytes;
  return sum;
}

bool is_device_memory(const void* data, size_t bytes) {
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  const auto* begin = static_cast<const std::byte*>(data);
  auto found = all.bytes_at.upper_bound(const_cast<void*>(data));
  if (found == all.bytes_at.begin()) return false;
  --found;
  const auto* end = static_cast<const std::byte*>(found->first) + found->second;
  return begin < end && bytes <= static_cast<size_t>(end - begin);
}

void protect_device_memory(int protection) {
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  protect(all, protection);
}

DeviceAccess::DeviceAccess() {
  Regions& all = regions();
  const std::lock_guard lock(all.mutex);
  if (all.accesses++ == 0) protect(all, PROT_READ | PROT_WRITE);
}

DeviceAccess::~DeviceAccess() {
  if (queues > 0 && !keeps_access)
    keeps_access = true;
  else
    end_access();
}

QueuedWork::QueuedWork() { ++queues; }
QueuedWork::~QueuedWork() {
  if (--queues == 0) close_pages();
}
void QueuedWork::close_pages() {
  if (std::exchange(keeps_access, false)) end_access();
}

}  // namespace snug::cuda_emulator
