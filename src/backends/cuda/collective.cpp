// What ranks do together. Cards are connected by NCCL, which this backend does not drive yet: plans
// are made of it, and a job of several ranks is refused before it begins. A rank alone copies.
#include "backends/cuda/kind_functions.h"

namespace snug::backends::cuda {
namespace {

using program::AllGather;
using program::AllReduce;
using program::ReduceScatter;

template <typename Struct>
std::unique_ptr<Prepared> prepare(const Struct& collective, const program::OperationView&,
                                  CudaContext&) {
  if (collective.ranks > 1)
    base::throw_user_error(
        "{} ranks on cards need NCCL, which the cuda backend does not use yet; train on one card, "
        "or with backend=cpu under mpirun",
        collective.ranks);
  return nullptr;
}

void copy(std::span<const Buffer> from, std::span<const Buffer> to, CudaContext& context) {
  for (size_t i = 0; i < from.size(); ++i)
    CUDA_CHECK(cudaMemcpyAsync(to[i].data, from[i].data, static_cast<size_t>(from[i].bytes()),
                               cudaMemcpyDefault, context.stream.get()));
}

void run(const AllGather& gather, const Invocation& invocation, CudaContext& context) {
  if (!gather.in_place) copy(invocation.reads, invocation.writes, context);
}

void run(const ReduceScatter& reduce, const Invocation& invocation, CudaContext& context) {
  if (!reduce.in_place) copy(invocation.reads, invocation.writes, context);
}

void run(const AllReduce&, const Invocation&, CudaContext&) {}

}  // namespace

SNUG_CUDA_KIND(AllGather, .prepare = prepare);
SNUG_CUDA_KIND(ReduceScatter, .prepare = prepare);
SNUG_CUDA_KIND(AllReduce, .prepare = prepare);

}  // namespace snug::backends::cuda
