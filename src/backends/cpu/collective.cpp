// Ranks whose tensors lie in the host's memory.
#include "backends/collective_scratch.h"
#include "backends/cpu/kind_functions.h"
#include "backends/host_collectives.h"

namespace snug::backends::cpu {
namespace {

template <typename Struct>
requires(program::traits_of<Struct>().is_collective) void run(const Struct& collective,
                                                              const Invocation& invocation,
                                                              CpuContext& context) {
  context.collectives->begin(collective, invocation);
}

template <typename Struct>
int64_t workspace_bytes(const Struct&, const program::OperationView& view, const CpuContext&) {
  return collective_scratch_bytes(view);
}

}  // namespace

SNUG_CPU_KIND(AllGather);
SNUG_CPU_KIND(ReduceScatter, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(AllReduce, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
