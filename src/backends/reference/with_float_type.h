// A program in another precision: what makes the oracle of a program its fp64 form.
#pragma once

#include "program/ir/program.h"

namespace snug::backends::reference {

// The program with every float tensor in `type`. Workspaces are left alone: they are bytes, whose
// number the target states again.
program::Program with_float_type(program::Program program, program::DType type);

}  // namespace snug::backends::reference
