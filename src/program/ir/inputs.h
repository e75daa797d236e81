// Tensors that the host writes or reads between runs of a program.
#pragma once

#include "program/ir/program.h"

namespace snug::program {

// `random` (2) i32 = [step, first row of the micro-batch in the step]: the part of every random key
// that changes between runs. Added to the program on first use.
TensorId random_input(Program& program);

// Whether the program begins with a copy of a tensor that the host sets. That copy waits for
// everything that ran before.
bool begins_with_input(const Program& program);

// The tensor in host memory that a copy of the program reads to fill this tensor; kNone if no copy
// does.
TensorId host_side(const Program& program, TensorId tensor);

}  // namespace snug::program
