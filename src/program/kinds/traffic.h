// Bytes and operations that kinds of different files count in the same way.
#pragma once

#include <cstdint>

#include "program/kind.h"

namespace snug::program {

// Bytes of everything the operation reads, writes and updates, each tensor once. Scratch stays out:
// it is the backend's own affair.
double operand_bytes(const OperationView& view);

// Bytes of the first `rows` rows of a matrix, or of all of it when it has fewer.
double row_bytes(const Tensor& matrix, double rows);

// Everything touched once, and a fixed number of operations for each of `elements`.
Cost streaming_cost(const OperationView& view, int64_t elements, double flops_an_element);

}  // namespace snug::program
