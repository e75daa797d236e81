// Tensors that the host fills or reads between runs of a program.
#pragma once

#include "program/ir/program.h"

namespace snug::program {

// `random` (2) i32 = [step, first row of the micro-batch in the step]: the part of every random key
// that changes. Declared on first use.
TensorId random_input(Program& program);

// Whether the program begins with a copy of what the host gives it, which waits until all that ran
// before has ended.
bool begins_with_input(const Program& program);

// Where the host writes what a program's copy brings to this tensor; kNone where no copy does.
TensorId host_side(const Program& program, TensorId tensor);

}  // namespace snug::program
