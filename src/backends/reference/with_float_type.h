// Converts a program to another precision: the fp64 form of a program is its oracle.
#pragma once

#include "program/ir/program.h"

namespace snug::backends::reference {

// The program with every float tensor in `type`. Workspaces are unchanged, since they are bytes
// whose number the target states anew.
program::Program with_float_type(program::Program program, program::DType type);

}  // namespace snug::backends::reference
