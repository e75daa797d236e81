// Which tensors a kernel may read ahead of its turn: those of lifetime run that the program does
// not change, where it begins with a copy from the host. That waits for all that ran before, other
// programs among it, so that what they wrote is there. Views of them likewise.
//
//   before   tensor w (4, 4) bf16 weight run
//            ids = copy(host.ids)
//            y = f(w, ids)
//   after    tensor w (4, 4) bf16 weight run constant
//
// After host_copies.
#pragma once

#include "program/ir/program.h"

namespace snug::passes {

program::Program mark_constants(program::Program program);

}  // namespace snug::passes
