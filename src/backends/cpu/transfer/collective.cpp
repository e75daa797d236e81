// Collectives of ranks whose tensors are in host memory.
#include "program/kinds/transfer/collective.h"
#include "backends/cpu/kind_functions.h"
#include "backends/host_collectives.h"
#include "program/kinds/transfer/collective_pieces.h"

namespace snug::backends::cpu {
namespace {

// The size of a piece over all ranks. A message on one host takes 50 us plus 2 GB/s, so with two
// ranks a piece takes 1 ms; larger pieces gain little and need more scratch.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

template <program::SumOverRanks Struct>
Struct decide(const Struct& sum, const program::OperationView& view, const CpuContext&) {
  Struct decided = sum;
  decided.piece_elements = program::piece_elements_within(kPieceBytes, sum, view);
  return decided;
}

template <typename Struct>
requires(program::traits_of<Struct>().category == program::Category::collective) void run(
    const Struct& collective, const Invocation& invocation, CpuContext& context) {
  context.collectives->begin(collective, invocation);
}

template <program::SumOverRanks Struct>
int64_t workspace_bytes(const Struct& sum, const program::OperationView& view, const CpuContext&) {
  return program::scratch_bytes(sum, view);
}

}  // namespace

SNUG_CPU_KIND(AllGather);
SNUG_CPU_KIND(ReduceScatter, .decide = decide, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(AllReduce, .decide = decide, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
