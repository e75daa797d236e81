#include "plan/step_work.h"

#include <algorithm>

#include "program/kind.h"

namespace snug::plan {
namespace {

// A ratio of 100 operations a byte: between two CPU cores with bf16 products (1 TFLOP/s against
// 10 to 20 GB/s) and an accelerator (700 TFLOP/s against 3.5 TB/s).
constexpr double kFlopsASecond = 1e12;
constexpr double kBytesASecond = 1e10;

double seconds_of(const program::Program& program, const program::Load& load) {
  double seconds = 0;
  for (const program::Operation& operation : program.operations) {
    const program::Cost cost = program::cost({program, operation}, load);
    seconds += std::max(cost.flops / kFlopsASecond, cost.bytes / kBytesASecond);
  }
  return seconds;
}

}  // namespace

double assumed_step_seconds(const Job& job, const TrainingSpec& spec) {
  const program::Load load{
      .segment_tokens = 0, .trained_fraction = 1.0, .row_tokens = spec.row_tokens};
  double seconds = 0;
  for (const program::Program& program : job.programs) {
    if (program.name == "micro_first" || program.name == "update")
      seconds += seconds_of(program, load);
    if (program.name == "micro_next")
      seconds += static_cast<double>(spec.accumulation - 1) * seconds_of(program, load);
  }
  return seconds;
}

}  // namespace snug::plan
