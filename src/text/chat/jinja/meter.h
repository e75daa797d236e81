// What the rendering on this thread may still use. The basic operations on texts and lists charge
// it for their work, and containers for the memory that they allocate, so that code which templates
// call need not do so itself. Without a running rendering, charging has no effect.
//
// A step is the time for evaluating one expression, 50 to 100 ns; longer operations are charged as
// several steps. Operations are charged before they run, except for a search, which is charged for
// the part that it went through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "text/chat/jinja/limits.h"

namespace snug::text::jinja {

// The bytes that one step pays for when they are compared or hashed, searched for a part, or
// processed character by character.
inline constexpr size_t kComparedPerStep = 512;
inline constexpr size_t kSearchedPerStep = 32;
inline constexpr size_t kWalkedPerStep = 8;

// The meter of this thread, as long as the object lives.
class Meter {
 public:
  Meter();
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  void charge_steps(int64_t steps);
  void charge_bytes(int64_t bytes);

 private:
  void look_at_clock();

  Meter* outer_;
  int64_t steps_ = kMaxSteps;
  int64_t bytes_ = kMaxBytes;
  int64_t next_look_ = kMaxSteps;  // when this many steps are left, the clock is read
  int64_t end_ns_;                 // limit of the processor time
};

// Throw TemplateError once the rendering has used more than limits.h allows.
void charge_steps(int64_t steps);
void charge_bytes(int64_t bytes);
[[noreturn]] void fail_by_bytes();
inline void charge_steps(size_t size, size_t per_step) {
  charge_steps(static_cast<int64_t>(size / per_step));
}

// Charges the memory that containers allocate.
template <typename T>
class MeteredAllocator {
 public:
  using value_type = T;
  MeteredAllocator() = default;
  template <typename Other>
  MeteredAllocator(const MeteredAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    // No container allocates more than 2^63 bytes. kBlock covers a block's header and control
    // block.
    charge_bytes(static_cast<int64_t>(count * sizeof(T)) + kBlock);  // NOLINT: T may be a pointer
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* at, size_t count) { std::allocator<T>().deallocate(at, count); }
  template <typename Other>
  bool operator==(const MeteredAllocator<Other>&) const {
    return true;
  }

 private:
  static constexpr int64_t kBlock = 16;
};

}  // namespace snug::text::jinja
