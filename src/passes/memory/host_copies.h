// host_copies: adds the copies of what the host gives to a program before each run, and of what it
// reads after it.
//
//   before   y (4) f32 = f(tokens)       where tokens has role batch, and the host wants y
//   after    tokens = copy(host.tokens)  y = f(tokens)  host.y = copy(y)
//
// Each batch tensor that is read gets a tensor host.NAME in pinned memory and a copy at the start
// of the list; each result likewise gets a copy at the end. A result that the program does not
// touch is declared too: it holds what another program of the job wrote. Runs after lower, so that
// these copies are not moved.
#pragma once

#include <span>

#include "program/ir/program.h"

namespace snug::passes {

// `results`: tensors of lifetime step or run that the host reads.
program::Program host_copies(program::Program program, std::span<const program::Tensor> results);

}  // namespace snug::passes
