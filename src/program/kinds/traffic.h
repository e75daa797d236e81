// Bytes and operations that kinds of different files count in the same way.
#pragma once

#include <cstdint>

#include "program/kinds/kind.h"

namespace snug::program {

// Bytes that the operation moves: of everything it reads and writes, each tensor once, and twice of
// what it updates, which is read and written. Scratch stays out: it is the backend's own affair.
double operand_bytes(const OperationView& view);

// Bytes of the first `rows` rows of a matrix, or of all of it when it has fewer.
double row_bytes(const Tensor& matrix, double rows);

// Everything moved as operand_bytes says, and a fixed number of operations for each of `elements`.
Cost streaming_cost(const OperationView& view, int64_t elements, double flops_per_element);

}  // namespace snug::program
