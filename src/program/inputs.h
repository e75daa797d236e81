// Tensors the host fills that more than one pass or method may ask for.
#pragma once

#include "program/program.h"

namespace snug::program {

// `random` (2) i32 = [step, first row of the micro-batch in the step]: the part of every random key
// that changes. Declared on first use.
TensorId random_input(Program& program);

}  // namespace snug::program
