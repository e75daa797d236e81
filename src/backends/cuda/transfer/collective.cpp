// Collectives through NCCL and Snug's own kernels, in parallel with the kernels' stream
// (card_collectives.h).
#include "program/kinds/transfer/collective.h"
#include "backends/cuda/kind_functions.h"

namespace snug::backends::cuda {
namespace {

template <typename Struct>
requires(program::traits_of<Struct>().category == program::Category::collective)
    std::unique_ptr<Prepared> prepare(const Struct&, const program::OperationView&,
                                      CudaContext& context) {
  context.collectives.prepare();
  return nullptr;
}

template <typename Struct>
requires(program::traits_of<Struct>().category == program::Category::collective) void run(
    const Struct& collective, const Invocation& invocation, CudaContext& context) {
  const cudaStream_t work = context.stream.get();
  context.host_work.wait_for(invocation, context.collectives.stream(work));
  invocation.note_channel(
      context.channel_of(context.collectives.begin(collective, invocation, work)));
}

}  // namespace

SNUG_CUDA_KIND(AllGather, .has_kernels = false, .prepare = prepare);
SNUG_CUDA_KIND(ReduceScatter, .has_kernels = false, .prepare = prepare);
SNUG_CUDA_KIND(AllReduce, .has_kernels = false, .prepare = prepare);

}  // namespace snug::backends::cuda
