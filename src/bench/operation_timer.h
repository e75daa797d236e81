// Times every operation of training steps where it stands: its operands were written by the
// operations before it, weights and saved activations come from wherever the step left them. So
// what is measured is what a step takes, caches and the threads' waking included. A device stamps
// the times itself: the host does not wait between operations.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "bench/calibration_steps.h"
#include "bench/contention.h"
#include "plan/job/job.h"
#include "plan/time/rates.h"
#include "runtime/execution/executor.h"

namespace snug::bench {

// Seconds measured for each name and shape, over all steps and places.
class OperationTimes {
 public:
  void add(const plan::RateKey& key, double seconds);
  // Medians, in the order of names and shapes.
  std::vector<plan::RateSample> samples() const;

  // What all operations of a name and shape took together.
  struct Total {
    plan::RateKey key;  // its work is one operation's
    int64_t count = 0;
    double seconds = 0;
    double work = 0;
  };
  std::vector<Total> totals() const;

 private:
  struct Measured {
    plan::RateKey key;
    std::vector<double> seconds;  // for the work of `key`
    double all_seconds = 0;
    double all_work = 0;
  };
  std::map<std::pair<std::string, std::vector<double>>, Measured> measured_;
};

struct StepTiming {
  int repeats = 0;
  double median_seconds = 0;  // of a whole step
  double least_seconds = 0;
  bool is_disturbed = false;  // others had a processor in every repeat
};

// A step with random weights and a batch of full_rows(), ready to run.
class FilledStep {
 public:
  FilledStep(const CalibrationStep& step, backends::Backend& backend);
  const plan::Job& job() const { return job_; }
  runtime::Executor& executor() { return executor_; }

 private:
  plan::Job job_;
  runtime::Executor executor_;
};

// Gives the programs of the step a batch full of random tokens, in segments of equal length, and
// the numbers that they read with each step. For next tokens, of models without an encoder.
void fill_step(const CalibrationStep& step, const plan::Job& job, runtime::Executor& executor,
               float learning_rate);

// Runs the program once, launch by launch: seconds of each launch at the index of its first
// operation, 0 at those of operations that are joined to another.
std::vector<double> launch_seconds(const plan::StepProgram& step, runtime::Executor& executor);

// Plans the step, allocates it, fills it with random values and runs it: once to warm up, then as
// often as its budget says (time_rounds). Adds the times of the repeats that count.
StepTiming time_operations(const CalibrationStep& step, backends::Backend& backend,
                           OperationTimes& times, const ReadTimes& read_times = read_process_times);

}  // namespace snug::bench
