// What ranks do together, by NCCL and own kernels next to the stream of kernels
// (card_collectives.h).
#include "backends/cuda/kind_functions.h"

namespace snug::backends::cuda {
namespace {

template <typename Struct>
requires(program::traits_of<Struct>().is_collective) void run(const Struct& collective,
                                                              const Invocation& invocation,
                                                              CudaContext& context) {
  const cudaStream_t work = context.stream.get();
  context.host_work.wait_for(invocation, context.collectives.stream(work));
  invocation.note_channel(
      context.channel_of(context.collectives.begin(collective, invocation, work)));
}

}  // namespace

SNUG_CUDA_KIND(AllGather);
SNUG_CUDA_KIND(ReduceScatter);
SNUG_CUDA_KIND(AllReduce);

}  // namespace snug::backends::cuda
