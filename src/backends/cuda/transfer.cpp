#include "backends/cuda/kind_functions.h"

namespace snug::backends::cuda {

using program::Await;
using program::Transfer;

void run(const Transfer&, const Invocation& invocation, CudaContext& context) {
  const Buffer& x = invocation[Transfer::kX];
  const Buffer& y = invocation[Transfer::kY];
  context.side_copies.begin(invocation.channel, {y.data, x.data, x.bytes()}, context.stream.get());
}

void run(const Await&, const Invocation& invocation, CudaContext& context) {
  context.side_copies.await(invocation[Await::kY].data, context.stream.get());
}

}  // namespace snug::backends::cuda
