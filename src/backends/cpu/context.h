// What every kind's function of the CPU backend is given besides its operation.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"

namespace snug::backends {
class HostCollectives;
}

namespace snug::backends::cpu {

struct CpuContext {
  Isa isa = Isa::v2;
  const Kernels& kernels;
  int threads = 1;
  HostCollectives* collectives = nullptr;  // null where nothing runs
};

// A context with the kernels of an instruction set, which need not be this processor's unless they
// run.
CpuContext context_of(Isa isa, int threads);

// Finds the instruction set, holds oneDNN to what it may have of it and starts the threads (0: one
// a processor).
CpuContext open_context(int threads);

}  // namespace snug::backends::cpu
