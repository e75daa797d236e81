// Runs a small program on a backend with every tensor in its own memory, under the rules a kernel
// may break without anyone noticing: what an operation writes and its workspace start as NaN bytes,
// every allocation lies between guards, and after each operation nothing may have changed but its
// writes, updates and workspace.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace snug::backends::test {

using Values = std::vector<double>;
// Values of tensors that a program expects, row-major.
using Inputs = std::map<program::TensorId, Values>;

struct RunResult {
  std::map<program::TensorId, Values> values;                 // of all written and updated tensors
  std::map<program::TensorId, std::vector<std::byte>> bytes;  // the same as stored
  std::vector<std::string> violations;                        // empty when the rules were kept
};

// Requires the backend to run every operation of the program. Tensors without inputs are poisoned.
// bounds: what the host knows of the batch; null: nothing.
RunResult guarded_run(Backend& backend, program::Program program, const Inputs& inputs,
                      const program::BatchBounds* bounds = nullptr);

// The values as they read after storing them in this type.
Values rounded(Values values, program::DType type);

}  // namespace snug::backends::test
