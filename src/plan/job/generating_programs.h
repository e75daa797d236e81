// The forward programs with which a job generates: prefill and decode, each in a few sizes. The
// smaller ones overlay one another in the arena.
//
// Pure functions.
#pragma once

#include <vector>

#include "models/blocks.h"
#include "plan/job/inference_shape.h"
#include "program/ir/program.h"

namespace snug::plan {

struct GeneratingProgram {
  program::Program program;
  std::vector<program::Tensor> results;  // that the host reads
};

// The largest prefill comes first.
std::vector<GeneratingProgram> generating_programs(const models::Stack& stack,
                                                   const InferenceShape& shape,
                                                   program::DType compute);

}  // namespace snug::plan
