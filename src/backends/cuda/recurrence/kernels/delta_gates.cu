#include "backends/cuda/recurrence/kernels/delta_gates.h"

#include "backends/cuda/elementwise/kernels/activations.cuh"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

// log(1 + exp(x)).
__device__ float softplus(float x) { return fmaxf(x, 0.0F) + log1pf(expf(-fabsf(x))); }

__device__ float decay_rate(const DeltaGatesRun& run, int64_t head) {
  return -expf(load_one(run.a_log, head));
}

__device__ float decay_input(const DeltaGatesRun& run, int64_t token, int64_t head) {
  return load_one(run.a, token * run.a.stride + head) + load_one(run.dt_bias, head);
}

struct OpenGates {
  DeltaGatesRun run;
  __device__ void operator()(int64_t token, int64_t head) const {
    store_one(run.g, token * run.g.stride + head,
              decay_rate(run, head) * softplus(decay_input(run, token, head)));
    store_one(run.beta, token * run.beta.stride + head,
              sigmoid(load_one(run.b, token * run.b.stride + head)));
  }
};

struct GatesBack {
  DeltaGatesGradRun run;
  __device__ void operator()(int64_t token, int64_t head) const {
    const DeltaGatesRun& forward = run.forward;
    const float beta = sigmoid(load_one(forward.b, token * forward.b.stride + head));
    store_one(run.da, token * run.da.stride + head,
              load_one(run.dg, token * run.dg.stride + head) * decay_rate(forward, head) *
                  sigmoid(decay_input(forward, token, head)));
    store_one(run.db, token * run.db.stride + head,
              load_one(run.dbeta, token * run.dbeta.stride + head) * beta * (1.0F - beta));
  }
};

// One block a head: sums over tokens. It reads dg, not da, which may be rounded.
__global__ void gate_weights_kernel(DeltaGatesGradRun run) {
  const DeltaGatesRun& forward = run.forward;
  const int64_t head = blockIdx.x;
  const float rate = decay_rate(forward, head);
  float sums[2] = {0.0F, 0.0F};
  for (int64_t token = threadIdx.x; token < forward.tokens; token += blockDim.x) {
    const float input = decay_input(forward, token, head);
    const float of_rate = load_one(run.dg, token * run.dg.stride + head) * rate;
    sums[0] += of_rate * softplus(input);
    sums[1] += of_rate * sigmoid(input);
  }
  block_sums(sums);
  if (threadIdx.x > 0) return;
  store_one(run.da_log, head, sums[0]);
  store_one(run.ddt_bias, head, sums[1]);
}

}  // namespace

void delta_gates(const DeltaGatesRun& run, cudaStream_t stream) {
  over_items(OpenGates{run}, run.tokens, run.heads, stream);
}

void delta_gates_grad(const DeltaGatesGradRun& run, cudaStream_t stream) {
  const DeltaGatesRun& forward = run.forward;
  if (run.da_log.data != nullptr) {
    LaunchShape shape;
    shape.block.x = row_threads(forward.tokens);
    shape.grid.x = static_cast<uint32_t>(forward.heads);
    launch(gate_weights_kernel, shape, stream, run);
  }
  over_items(GatesBack{run}, forward.tokens, forward.heads, stream);
}

}  // namespace snug::backends::cuda
