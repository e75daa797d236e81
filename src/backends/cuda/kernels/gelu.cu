#include "backends/cuda/kernels/gelu.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

// gelu(x) = x factor, gelu'(x) = factor + x slope.
struct Gate {
  float factor, slope;
};

// The normal distribution function and its density.
__device__ Gate normal_gate(float x) {
  constexpr float kRootHalf = 0.707106781F;
  constexpr float kDensityAtZero = 0.398942280F;  // 1 / sqrt(2 pi)
  return {0.5F * erfcf(-kRootHalf * x), kDensityAtZero * expf(-0.5F * x * x)};
}

// (1 + tanh(u)) / 2 is the sigmoid of 2 u = sqrt(8 / pi) (x + 0.044715 x^3), and with
// e = exp(-2 |u|) its slope is (2 u)' e / (1 + e)^2, which cancels nothing. Beyond 16 the sigmoid
// is 0 or 1.
__device__ Gate tanh_gate(float x) {
  constexpr float kLinear = 1.59576912F;  // sqrt(8 / pi)
  constexpr float kCubic = kLinear * 0.044715F;
  const float a = fminf(fabsf(x), 16.0F);
  const float e = expf(-a * (kLinear + kCubic * a * a));
  const float r = 1.0F / (1.0F + e);
  return {x < 0.0F ? e * r : r, (kLinear + 3.0F * kCubic * a * a) * (e * r * r)};
}

__device__ Gate gate_of(float x, bool tanh) { return tanh ? tanh_gate(x) : normal_gate(x); }

template <int kCount>
struct Gelu {
  GeluRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> y = load<kCount>(run.x, row * run.x.stride + column);
    for (int i = 0; i < kCount; ++i) y.at[i] *= gate_of(y.at[i], run.tanh).factor;
    store(run.y, row * run.y.stride + column, y);
  }
};

template <int kCount>
struct GeluGrad {
  GeluGradRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> dx = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> x = load<kCount>(run.x, row * run.x.stride + column);
    for (int i = 0; i < kCount; ++i) {
      const Gate gate = gate_of(x.at[i], run.tanh);
      dx.at[i] *= gate.factor + x.at[i] * gate.slope;
    }
    store(run.dx, row * run.dx.stride + column, dx);
  }
};

}  // namespace

void gelu(const GeluRun& run, cudaStream_t stream) { over_elements<Gelu>(run, stream); }
void gelu_grad(const GeluGradRun& run, cudaStream_t stream) {
  over_elements<GeluGrad>(run, stream);
}

}  // namespace snug::backends::cuda
