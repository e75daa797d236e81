// Copies between spaces that go on next to other operations: what is awaited is there, also when
// what was copied from is overwritten after the await, and in a recording. Records failures of the
// current test.
#pragma once

#include "backends/backend.h"

namespace snug::backends::test {

void check_transfers(Backend& backend);

}  // namespace snug::backends::test
