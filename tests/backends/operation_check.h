// Cases of the tables on one backend against the reference in fp64, for the tests of each backend.
//
// Each case of the tables runs with fresh random inputs, outputs and workspace poisoned, memory
// guarded (guarded_run.h), once with its tensors apart and once for each way its outputs may share
// an input's bytes. f32 must agree within 1e-5, anything with bf16 in it within 1e-2, a tensor.
// What a backend does not run is printed; what it must run and does not fails.
#pragma once

#include <functional>

#include "operation_case.h"

namespace snug::backends::test {

// Whether a backend must run a case of a kind that tables require of all.
using MustRun = std::function<bool(const OperationCase&)>;

// Records failures of the current test and prints a line. `only_required`: leaves away the mixtures
// of types that no program needs. `is_chosen`: leaves away the other cases; empty: all are.
void check_kind(Backend& backend, program::Kind kind, const MustRun& must_run,
                bool only_required = false,
                const std::function<bool(const OperationCase&)>& is_chosen = {});

// The declared table of the cuda backend: all, but products with a stored weight take the expansion
// where there are many rows or one ends within a block.
bool cuda_must_run(const OperationCase& operation_case);

// Except for copies, whose two halves are checked together (transfers_check.h).
std::vector<program::Kind> all_kinds();

}  // namespace snug::backends::test
