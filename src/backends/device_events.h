// Events that tell when queued work is done, at points that the caller marks: to time operations
// without waiting between them, and to wait for a single copy. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace snug::backends {

class DeviceEvents {
 public:
  virtual ~DeviceEvents() = default;
  // Marks point `index`: it is reached when all earlier work and copies are done. A point may be
  // marked again.
  virtual void mark(size_t index) = 0;
  // Whether the point is reached; true if it was never marked.
  virtual bool is_reached(size_t index) = 0;
  // Returns when the point is reached; at once if it was never marked.
  virtual void wait(size_t index) = 0;
  // Seconds from one marked point to a later one; waits until the later one is reached.
  virtual double seconds(size_t begin, size_t end) = 0;
};

// Events for a backend whose run() returns when the work is done: they are times of the host's
// clock.
class HostEvents final : public DeviceEvents {
 public:
  explicit HostEvents(size_t points) : points_(points) {}
  void mark(size_t index) override { points_[index] = Clock::now(); }
  bool is_reached(size_t) override { return true; }
  void wait(size_t) override {}
  double seconds(size_t begin, size_t end) override {
    return std::chrono::duration<double>(points_[end] - points_[begin]).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> points_;
};

}  // namespace snug::backends
