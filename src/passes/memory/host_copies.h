// What the host gives a program before each run, and what it reads after it.
//
// before: y (4) f32 = f(tokens); tokens has role batch; the host wants y.
// after:  tokens = copy(host.tokens); y = f(tokens); host.y = copy(y).
//
// For each batch tensor that is read, host.NAME in pinned memory and a copy at the head of the
// list; for each result likewise, and a copy at its end. A result that the program does not touch
// is declared: it holds what another program of the job left there. After lower, since these copies
// stay where they are.
#pragma once

#include <span>

#include "program/ir/program.h"

namespace snug::passes {

// `results`: tensors of lifetime step or run.
program::Program host_copies(program::Program program, std::span<const program::Tensor> results);

}  // namespace snug::passes
