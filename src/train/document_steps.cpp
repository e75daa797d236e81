#include "train/document_steps.h"

#include <atomic>
#include <optional>

namespace snug::train {

std::optional<methods::RowCounts> DocumentSteps::begin(const Step& step,
                                                       const std::atomic<int>& /*stop_signal*/) {
  step_ = step;
  return loader_.count(step.first_row, step.rows);
}

void DocumentSteps::load(program::ProgramName program, int64_t micro) {
  loader_.load(program, step_.first_row + first_row_of(micro), step_.first_row + step_.rows);
}

}  // namespace snug::train
