// Times every operation of a training step within the step: earlier operations wrote its operands,
// and weights and saved activations are wherever the step left them. So the measured times include
// the state of the caches and waking the threads. A device stamps the times itself: the host does
// not wait between operations.
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

// The seconds measured for each name and shape, over all steps and all places in them.
class OperationTimes {
 public:
  void add(const plan::RateKey& key, double seconds);
  // The medians, ordered by name and shape.
  std::vector<plan::RateSample> samples() const;

  // The total time of all operations with one name and shape.
  struct Total {
    plan::RateKey key;  // the work in it is that of one operation
    int64_t count = 0;
    double seconds = 0;
    double work = 0;
  };
  std::vector<Total> totals() const;

 private:
  struct Measured {
    plan::RateKey key;
    std::vector<double> seconds;  // each is scaled to the work of `key`
    double all_seconds = 0;
    double all_work = 0;
  };
  std::map<std::pair<std::string, std::vector<double>>, Measured> measured_;
};

struct StepTiming {
  int repeats = 0;
  double median_seconds = 0;  // of the whole step
  double least_seconds = 0;
  bool is_disturbed = false;  // other programs took processor time in every repeat
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

// Fills the batch of the step's programs with random tokens, in segments of equal length, and sets
// the numbers that they read in each step. Only for next-token prediction with models that have no
// encoder.
void fill_step(const CalibrationStep& step, const plan::Job& job, runtime::Executor& executor,
               float learning_rate);

// Runs the program once, launch by launch. Returns the seconds of each launch at the index of its
// first operation, and 0 for operations that are joined to another one's launch.
std::vector<double> launch_seconds(const plan::StepProgram& step, runtime::Executor& executor);

// Plans the step, allocates it, fills it with random values and runs it: once to warm up, then as
// often as its budget says (time_rounds). Adds the times of the repeats that count to `times`.
StepTiming time_operations(const CalibrationStep& step, backends::Backend& backend,
                           OperationTimes& times, const ReadTimes& read_times = read_process_times);

}  // namespace snug::bench
