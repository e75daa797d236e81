// How a result is judged against its oracle: ||a - b|| / ||b|| of a whole tensor.
#pragma once

#include <optional>

#include "operation_case.h"

namespace snug::backends::test {

// 0 when both are zero, infinite when only the oracle is or when one has a NaN where the other has
// none. Infinities and NaNs count as equal where both have them.
double relative_error(const Values& result, const Values& oracle);

// The values an operation should give: on the reference backend, in fp64.
RunResult oracle_of(const OperationCase& operation_case);

// Whether this processor multiplies bf16 natively, so that the cpu backend must; not where the
// environment's SNUG_ISA holds it to less.
bool cpu_must_multiply_bf16();
// Whether it has AMX tiles, so that the cpu backend must use them.
bool cpu_must_use_tiles();

}  // namespace snug::backends::test
