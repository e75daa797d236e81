// Seconds of each operation of one run, as the device stamps them.
#pragma once

#include <memory>

#include "runtime/executor.h"

namespace snug::runtime {

// An observer of programs with at most so many operations; marks where each begins and ends.
class Stopwatch final : public Executor::Observer {
 public:
  Stopwatch(size_t operations, backends::Backend& backend)
      : events_(backend.events(2 * operations)) {}
  void before(const program::Program&, size_t operation) override { events_->mark(2 * operation); }
  void after(const program::Program&, size_t operation) override {
    events_->mark(2 * operation + 1);
  }
  // Of the last run, which this waits for.
  double seconds(size_t operation) const {
    return events_->seconds(2 * operation, 2 * operation + 1);
  }

 private:
  std::unique_ptr<backends::DeviceEvents> events_;
};

}  // namespace snug::runtime
