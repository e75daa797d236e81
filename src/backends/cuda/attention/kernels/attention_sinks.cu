#include "backends/cuda/attention/kernels/attention_sinks.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

// One block per head. A query that sees no key has an lse of 0, which may be below the sink.
__global__ void sinks_grad_kernel(AttentionSinksGradRun run) {
  const int64_t head = blockIdx.x;
  const int64_t tokens = run.shape.q_tokens;
  const float sink = load_one(run.sinks, head);
  float sum = 0.0F;
  for (int64_t token = threadIdx.x; token < tokens; token += blockDim.x)
    sum -=
        expf(fminf(0.0F, sink - run.lse[head * tokens + token])) * run.delta[head * tokens + token];
  sum = block_sum(sum);
  if (threadIdx.x == 0) store_one(run.dsinks, head, sum);
}

}  // namespace

void attention_sinks_grad(const AttentionSinksGradRun& run, cudaStream_t stream) {
  AttentionGradRun of_delta;
  of_delta.shape = run.shape;
  of_delta.d_o = run.d_o;
  of_delta.o = run.o;
  of_delta.delta = run.delta;
  if (run.shape.q_tokens > 0) find_delta(of_delta, stream);
  LaunchShape shape;
  shape.block.x = row_threads(run.shape.q_tokens);
  shape.grid.x = static_cast<uint32_t>(run.shape.form.heads);
  launch(sinks_grad_kernel, shape, stream, run);
}

}  // namespace snug::backends::cuda
