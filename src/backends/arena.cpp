#include "backends/arena.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace snug::backends {
namespace {

struct Live {
  std::mutex mutex;
  std::vector<const Arena*> arenas;
};

Live& live() {
  static Live instance;
  return instance;
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

int64_t allocated_arena_bytes(program::Space space) {
  const std::lock_guard lock(live().mutex);
  int64_t bytes = 0;
  for (const Arena* arena : live().arenas)
    if (arena->space() == space) bytes += arena->allocated_bytes();
  return bytes;
}

}  // namespace snug::backends
