// What is counted of a loss scale. A file of its own, since kernels of cards include it.
#pragma once

#include <cstdint>

namespace snug::program {

// Counts of a loss scale, in the order of the tensor that keeps them.
enum LossScaleCount : uint8_t {
  kFiniteSteps,     // in a row, since the scale last changed or a step was skipped
  kSkippedSteps,    // in a row; 0 after a finite one
  kToleratedSteps,  // skipped steps that did not lower the scale, since it last grew
  kLossScaleCounts,
};

}  // namespace snug::program
