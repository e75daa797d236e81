// Seconds of each operation of one run, as the device stamps them.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/backend.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

// An observer of programs with at most so many operations; marks where each begins and ends, or
// each launch, which is under its first operation.
class Stopwatch final : public Executor::Observer {
 public:
  enum class Of : uint8_t { operations, launches };
  Stopwatch(size_t operations, backends::Backend& backend, Of of = Of::operations)
      : of_(of), events_(backend.events(2 * operations)) {}
  bool sees_launches() const override { return of_ == Of::launches; }
  void before(const program::Program&, size_t operation) override { events_->mark(2 * operation); }
  void after(const program::Program&, size_t operation) override {
    events_->mark(2 * operation + 1);
  }
  // The seconds of an operation in the last run, for which this waits.
  double seconds(size_t operation) const {
    return events_->seconds(2 * operation, 2 * operation + 1);
  }

 private:
  Of of_;
  std::unique_ptr<backends::DeviceEvents> events_;
};

}  // namespace snug::runtime
