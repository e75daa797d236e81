// mark_constants: marks the tensors that a kernel may read before the operations ahead of it have
// finished. These are tensors of lifetime run that the program does not change, and their views, if
// the program begins with a copy from the host. That copy waits for everything before it, earlier
// programs included, so their writes are complete.
//
//   before   tensor w (4, 4) bf16 weight run
//            ids = copy(host.ids)
//            y = f(w, ids)
//   after    tensor w (4, 4) bf16 weight run constant
//
// Runs after host_copies.
#pragma once

#include "program/ir/program.h"

namespace snug::passes {

program::Program mark_constants(program::Program program);

}  // namespace snug::passes
