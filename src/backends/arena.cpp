#include "backends/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <mutex>
#include <vector>

namespace snug::backends {
namespace {

constexpr auto kHostSpaces = {program::Space::pinned_host, program::Space::host};

struct Live {
  std::mutex mutex;
  std::vector<const Arena*> arenas;
};

Live& live() {
  static Live instance;
  return instance;
}

// The sum of count(arena) over the arenas of these spaces; nothing where one of them has no count.
template <typename F>
std::optional<int64_t> sum_over(std::initializer_list<program::Space> spaces, const F& count) {
  const std::lock_guard lock(live().mutex);
  int64_t bytes = 0;
  for (const Arena* arena : live().arenas) {
    if (std::ranges::find(spaces, arena->space()) == spaces.end()) continue;
    const std::optional<int64_t> counted = count(*arena);
    if (!counted) return std::nullopt;
    bytes += *counted;
  }
  return bytes;
}

}  // namespace

Arena::Arena(program::Space space) : space_(space) {
  const std::lock_guard lock(live().mutex);
  live().arenas.push_back(this);
}

Arena::~Arena() {
  const std::lock_guard lock(live().mutex);
  std::erase(live().arenas, this);
}

std::optional<int64_t> allocated_arena_bytes(program::Space space) {
  return sum_over({space}, [](const Arena& arena) { return arena.allocated_bytes(); });
}

std::optional<int64_t> allocated_host_bytes() {
  return sum_over(kHostSpaces, [](const Arena& arena) { return arena.allocated_bytes(); });
}

std::optional<int64_t> resident_host_bytes() {
  return sum_over(kHostSpaces,
                  [](const Arena& arena) { return resident_bytes(arena.data(), arena.bytes()); });
}

std::optional<int64_t> resident_bytes(const std::byte* data, int64_t bytes) {
  if (bytes == 0) return 0;
  const int64_t page = sysconf(_SC_PAGESIZE);
  std::array<unsigned char, 4096> resident{};
  const int64_t most = page * static_cast<int64_t>(resident.size());
  const auto begin = reinterpret_cast<intptr_t>(data);
  const intptr_t end = begin + bytes;
  int64_t found = 0;
  for (intptr_t first = begin / page * page; first < end; first += most) {
    const int64_t length = std::min<int64_t>(most, end - first);
    if (mincore(reinterpret_cast<void*>(first), static_cast<size_t>(length), resident.data()) != 0)
      return std::nullopt;
    for (intptr_t at = first; at < first + length; at += page)
      if ((resident[static_cast<size_t>((at - first) / page)] & 1U) != 0)
        found += std::min<intptr_t>(at + page, end) - std::max(at, begin);
  }
  if (found == 0) return std::nullopt;
  return found;
}

}  // namespace snug::backends
