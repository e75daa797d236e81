// Gradients against central finite differences, in fp64 on the reference backend.
#pragma once

#include <vector>

#include "operation_case.h"

namespace snug::backends::test {

// One operation whose outputs, each element times a weight and summed, make a number; that number's
// derivative in the inputs is what the kind's derivative must give.
struct GradientCase {
  OperationCase forward;
  // Inputs to differentiate by, and the elements of each that are looked at.
  std::map<program::TensorId, std::vector<size_t>> elements;
  // Outputs that count, with their weights: the gradients that flow into the backward operation.
  Inputs output_gradients;
};

// Of all kinds.
std::vector<program::Kind> differentiable_kinds();
// Inputs that the case's kind is differentiable in: float ones, but no table of angles, no scale
// and no numbers of a model that is only compared with.
// Whether the operation has a derivative: it changes nothing in place, and is not for inference
// alone.
bool is_differentiated(const OperationCase& operation_case);

std::vector<program::TensorId> differentiable_inputs(const OperationCase& operation_case);

// The derivatives in those elements, by central differences.
Inputs finite_differences(const GradientCase& gradient_case);

// The same as the kind gives them: program::differentiate on a tape, run in fp64.
Inputs derivatives(const GradientCase& gradient_case);

}  // namespace snug::backends::test
