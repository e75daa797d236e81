// That a backend refuses, before anything runs, what it does not do.
#pragma once

#include "backends/backend.h"

namespace snug::backends::test {

// Operations with tensors of types that no kernel of theirs has: runs() says no, prepare() fails a
// CHECK.
void check_refused_types(Backend& backend);
// Operations with tensors that do not lie as kernels read them, or that violate their kind's shape
// rule: prepare() fails a CHECK.
void check_refused_tensors(Backend& backend);
// Operations that were decided for another target: prepare() fails a CHECK.
void check_refused_decisions(Backend& backend);

}  // namespace snug::backends::test
