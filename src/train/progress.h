// What a user sees while a run goes: one line that moves on a terminal, plain lines in a log. One
// line a logged step, with the words users know.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "train/step_metrics.h"

namespace snug::train {

class Progress {
 public:
  // `first_step` steps were done before this process began. `planned_step_seconds`: 0: unknown.
  Progress(int64_t first_step, int64_t total_steps, double planned_step_seconds = 0);
  // Shows a step: in a log where it `is_logged`, on a terminal also others, some times a second.
  // Finishes the line that moves when `total_steps` is reached. No heap allocation.
  void show(const StepMetrics& metrics, bool is_logged = true);
  // A line of its own, above the one that moves.
  void note(std::string_view line) const;

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_left(const StepMetrics& metrics) const;
  void show_moving(const StepMetrics& metrics, bool is_logged);
  void show_plain(const StepMetrics& metrics) const;

  int64_t first_step_;
  int64_t total_steps_;
  double planned_step_seconds_;
  bool terminal_;
  Clock::time_point start_;
  Clock::time_point shown_;         // the last time that the line moved
  double recent_step_seconds_ = 0;  // a mean in which later steps weigh more; 0: none yet
};

}  // namespace snug::train
