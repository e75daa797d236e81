#include "base/available_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <new>
#include <string>
#include <string_view>

namespace snug::base {
namespace {

int64_t meminfo_available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kibibytes = 0;
  std::string unit;
  while (meminfo >> key >> kibibytes) {
    std::getline(meminfo, unit);
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return std::numeric_limits<int64_t>::max();
}

// The number in a file of the control group, or `otherwise` if the file is missing or says "max".
int64_t number_in(const char* path, int64_t otherwise) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : otherwise;
}

// The sum of the numbers that follow these keys in a file of "key number" lines.
int64_t sum_of_keys(const char* path, std::initializer_list<std::string_view> keys) {
  std::ifstream file(path);
  std::string key;
  int64_t value = 0;
  int64_t sum = 0;
  while (file >> key >> value)
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) sum += value;
  return sum;
}

// What version 2 of control groups leaves, as seen from inside a container. Cached files count as
// used there but can be evicted, so they are added back.
int64_t control_group_available_bytes() {
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  const int64_t limit = number_in("/sys/fs/cgroup/memory.max", kUnlimited);
  if (limit == kUnlimited) return kUnlimited;
  const int64_t used = number_in("/sys/fs/cgroup/memory.current", 0) -
                       sum_of_keys("/sys/fs/cgroup/memory.stat", {"active_file", "inactive_file"});
  return std::max<int64_t>(0, limit - used);
}

}  // namespace

int64_t available_memory_bytes() {
  return std::min(meminfo_available_bytes(), control_group_available_bytes());
}

void require_address_space(size_t bytes) {
  void* const place =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) throw std::bad_alloc();
  ::munmap(place, bytes);
}

}  // namespace snug::base
