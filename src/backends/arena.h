// Memory of one space, allocated once for a job and released with the object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "program/tensor.h"

namespace snug::backends {

class Arena {
 public:
  // Counts among the live ones from here on.
  explicit Arena(program::Space space);
  virtual ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  virtual std::byte* data() const = 0;
  virtual int64_t bytes() const = 0;
  // How much of it the system has given, by its own count: pages of the process, or what the driver
  // or the allocator says.
  virtual int64_t allocated_bytes() const = 0;
  program::Space space() const { return space_; }

 private:
  program::Space space_;
};

// The sum over all arenas of this process that are live.
int64_t allocated_arena_bytes(program::Space space);

}  // namespace snug::backends
