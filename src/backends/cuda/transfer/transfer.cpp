#include "program/kinds/transfer/transfer.h"
#include "backends/cuda/kind_functions.h"

namespace snug::backends::cuda {
namespace {

using program::Await;
using program::Copy;
using program::Transfer;

std::unique_ptr<Prepared> prepare(const Transfer&, const program::OperationView&,
                                  CudaContext& context) {
  context.side_copies.prepare();
  return nullptr;
}

void run(const Copy&, const Invocation& invocation, CudaContext& context) {
  const Buffer& x = invocation[Copy::kX];
  CUDA_CHECK(cudaMemcpyAsync(invocation[Copy::kY].data, x.data, static_cast<size_t>(x.bytes()),
                             cudaMemcpyDefault, context.stream.get()));
}

void run(const Transfer&, const Invocation& invocation, CudaContext& context) {
  const Buffer& x = invocation[Transfer::kX];
  const Buffer& y = invocation[Transfer::kY];
  context.host_work.wait_for(
      invocation, context.side_copies.stream_of(invocation.channel, context.stream.get()));
  const cudaStream_t copies = context.side_copies.begin(
      invocation.channel, {y.data, x.data, x.bytes()}, context.stream.get());
  invocation.note_channel(context.channel_of(copies));
}

void run(const Await&, const Invocation& invocation, CudaContext& context) {
  const bool by_host = invocation.channel == program::Channel::host;
  const cudaStream_t waits = by_host ? context.host_work.stream() : context.stream.get();
  if (!context.collectives.await(invocation, waits, !by_host))
    context.side_copies.await(invocation[Await::kY].data, waits);
  invocation.note_channel(context.channel_of(waits));
}

}  // namespace

SNUG_CUDA_KIND(Copy, .has_kernels = false);
SNUG_CUDA_KIND(Transfer, .has_kernels = false, .prepare = prepare);
SNUG_CUDA_KIND(Await, .has_kernels = false);

}  // namespace snug::backends::cuda
