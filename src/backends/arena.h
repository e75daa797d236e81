// Memory of one space, allocated once for a job and released with the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "program/ir/tensor.h"

namespace snug::backends {

class Arena {
 public:
  // From here on the arena is included in the sums below.
  explicit Arena(program::Space space);
  virtual ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  virtual std::byte* data() const = 0;
  virtual int64_t bytes() const = 0;
  // How much of the arena the system has actually provided, by the system's own count: resident
  // pages of the process, or what the driver reports. Nothing where there is no count.
  virtual std::optional<int64_t> allocated_bytes() const = 0;
  program::Space space() const { return space_; }

 private:
  program::Space space_;
};

// The sum over all existing arenas of this process; nothing where one of them has no count.
std::optional<int64_t> allocated_arena_bytes(program::Space space);

// The sum over both spaces of host memory; and the bytes of these arenas that the kernel counts as
// resident in this process. Nothing where one of them has no count.
std::optional<int64_t> allocated_host_bytes();
std::optional<int64_t> resident_host_bytes();

// The bytes of this range whose pages the kernel counts as resident. Nothing where it gives no
// answer, or counts none although all were written, as for memory that a driver has mapped.
std::optional<int64_t> resident_bytes(const std::byte* data, int64_t bytes);

}  // namespace snug::backends
