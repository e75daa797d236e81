// What the rendering that runs on this thread may still use. The operations on texts and lists
// charge it where they do their work, and containers where they ask for memory, so that nothing
// that a template calls can forget to. Where no rendering runs, charging does nothing.
//
// A step is what evaluating one expression takes, 50 to 100 ns; longer operations are charged as so
// many steps. What something costs is known before it is done, except of a search, which is charged
// as far as it went.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "text/chat/jinja/limits.h"

namespace snug::text::jinja {

// What one step pays for: bytes that are compared or hashed, that are searched for a part, and
// that are looked at character by character.
inline constexpr size_t kComparedPerStep = 512;
inline constexpr size_t kSearchedPerStep = 32;
inline constexpr size_t kWalkedPerStep = 8;

// The meter of this thread for as long as it lives.
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
  int64_t next_look_ = kMaxSteps;  // at the clock, once so many steps are left
  int64_t end_ns_;                 // of the processor time
};

// Throw TemplateError once the rendering has taken more than limits.h allows.
void charge_steps(int64_t steps);
void charge_bytes(int64_t bytes);
[[noreturn]] void fail_by_bytes();
inline void charge_steps(size_t size, size_t per_step) {
  charge_steps(static_cast<int64_t>(size / per_step));
}

// Charges what containers ask for.
template <typename T>
class MeteredAllocator {
 public:
  using value_type = T;
  MeteredAllocator() = default;
  template <typename Other>
  MeteredAllocator(const MeteredAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    // No container asks for more than 2^63 bytes. A block has a header, and often a control block.
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
