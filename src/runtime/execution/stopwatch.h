// Measures the seconds of each operation in one run, by the device's time stamps.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/backend.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

// An observer for programs with at most `operations` operations. It marks the begin and the end of
// each operation, or of each launch, which is stored under its first operation.
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
  // The seconds of an operation in the last run; waits for that run.
  double seconds(size_t operation) const {
    return events_->seconds(2 * operation, 2 * operation + 1);
  }

 private:
  Of of_;
  std::unique_ptr<backends::DeviceEvents> events_;
};

}  // namespace snug::runtime
