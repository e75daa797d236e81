// What every kind's functions of the CPU backend receive in addition to the operation.
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
  HostCollectives* collectives = nullptr;  // null where nothing is run
};

// A context with the kernels of an instruction set, which this processor must have only if they
// run.
CpuContext context_of(Isa isa, int threads);

// Finds the instruction set, limits oneDNN to the part of it that is safe and starts the threads
// (0: one per processor).
CpuContext open_context(int threads);

}  // namespace snug::backends::cpu
