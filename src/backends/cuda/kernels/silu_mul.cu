#include "backends/cuda/kernels/silu_mul.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/silu.cuh"

namespace snug::backends::cuda {
namespace {

template <int kCount>
struct SiluMul {
  SiluMulRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    const Elements<kCount> gate = load<kCount>(run.gate, row * run.gate.stride + column);
    Elements<kCount> y = load<kCount>(run.up, row * run.up.stride + column);
    for (int i = 0; i < kCount; ++i) y.at[i] = silu_mul_of(gate.at[i], y.at[i]);
    store(run.y, row * run.y.stride + column, y);
  }
};

template <int kCount>
struct SiluMulGrad {
  SiluMulGradRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    const Elements<kCount> dy = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> gate = load<kCount>(run.gate, row * run.gate.stride + column);
    const Elements<kCount> up = load<kCount>(run.up, row * run.up.stride + column);
    Elements<kCount> dgate;
    Elements<kCount> dup;
    for (int i = 0; i < kCount; ++i) {
      const float s = sigmoid(gate.at[i]);
      dgate.at[i] = dy.at[i] * up.at[i] * s * (1.0F + gate.at[i] * (1.0F - s));
      dup.at[i] = dy.at[i] * gate.at[i] * s;
    }
    store(run.dgate, row * run.dgate.stride + column, dgate);
    store(run.dup, row * run.dup.stride + column, dup);
  }
};

}  // namespace

void silu_mul(const SiluMulRun& run, cudaStream_t stream) { over_elements<SiluMul>(run, stream); }
void silu_mul_grad(const SiluMulGradRun& run, cudaStream_t stream) {
  over_elements<SiluMulGrad>(run, stream);
}

}  // namespace snug::backends::cuda
