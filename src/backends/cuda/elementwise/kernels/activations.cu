#include "backends/cuda/elementwise/kernels/activations.h"

#include "backends/cuda/elementwise/kernels/activations.cuh"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

template <int kCount>
struct Gelu {
  GeluRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> y = load<kCount>(run.x, row * run.x.stride + column);
    for (int i = 0; i < kCount; ++i) y.at[i] *= gelu_gate(y.at[i], run.tanh).factor;
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
      const GeluGate gate = gelu_gate(x.at[i], run.tanh);
      dx.at[i] *= gate.factor + x.at[i] * gate.slope;
    }
    store(run.dx, row * run.dx.stride + column, dx);
  }
};

template <int kCount>
struct Relu {
  ReluRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> y = load<kCount>(run.x, row * run.x.stride + column);
    // NaN stays NaN.
    for (int i = 0; i < kCount; ++i) y.at[i] = y.at[i] < 0.0F ? 0.0F : y.at[i];
    store(run.y, row * run.y.stride + column, y);
  }
};

template <int kCount>
struct ReluGrad {
  ReluGradRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> dx = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> y = load<kCount>(run.y, row * run.y.stride + column);
    for (int i = 0; i < kCount; ++i) dx.at[i] = y.at[i] > 0.0F ? dx.at[i] : 0.0F;
    store(run.dx, row * run.dx.stride + column, dx);
  }
};

// What the learned numbers and the constants of xielu amount to.
struct XieluFactors {
  float positive, negative, beta, epsilon;
};

__device__ float softplus_of(float x) { return fmaxf(x, 0.0F) + log1pf(expf(-fabsf(x))); }

__device__ XieluFactors factors_of(const XieluNumbers& numbers) {
  const float beta = load_one(numbers.beta, 0);
  return {softplus_of(load_one(numbers.alpha_p, 0)),
          beta + softplus_of(load_one(numbers.alpha_n, 0)), beta, load_one(numbers.epsilon, 0)};
}

// exp(min(x, epsilon)) - 1 - x; close to 0 the series from its square on.
__device__ float below_zero(float x, float epsilon) {
  const float m = fminf(x, epsilon);
  const float tail = m * m * (0.5F + m * (1.0F / 6.0F + m * (1.0F / 24.0F + m * (1.0F / 120.0F))));
  return (m > -0.1F ? tail : expm1f(m) - m) + (m - x);
}

template <int kCount>
struct Xielu {
  XieluRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    const XieluFactors by = factors_of(run.numbers);
    Elements<kCount> y = load<kCount>(run.x, row * run.x.stride + column);
    for (int i = 0; i < kCount; ++i) {
      const float x = y.at[i];
      y.at[i] =
          by.beta * x + (x > 0.0F ? by.positive * x * x : by.negative * below_zero(x, by.epsilon));
    }
    store(run.y, row * run.y.stride + column, y);
  }
};

template <int kCount>
struct XieluGrad {
  XieluGradRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    const XieluFactors by = factors_of(run.numbers);
    Elements<kCount> dx = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> all = load<kCount>(run.x, row * run.x.stride + column);
    for (int i = 0; i < kCount; ++i) {
      const float x = all.at[i];
      const float negative = x < by.epsilon ? expm1f(x) : -1.0F;
      dx.at[i] *= by.beta + (x > 0.0F ? 2.0F * by.positive * x : by.negative * negative);
    }
    store(run.dx, row * run.dx.stride + column, dx);
  }
};

template <int kCount>
struct XieluSlope {
  XieluSlopeRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    const float factor = sigmoid(load_one(run.alpha, 0));
    const float epsilon = load_one(run.epsilon, 0);
    Elements<kCount> slope = load<kCount>(run.x, row * run.x.stride + column);
    for (int i = 0; i < kCount; ++i) {
      const float x = slope.at[i];
      const float positive = x > 0.0F ? x * x : 0.0F;
      const float negative = x > 0.0F ? 0.0F : below_zero(x, epsilon);
      slope.at[i] = factor * (run.negative ? negative : positive);
    }
    store(run.slope, row * run.slope.stride + column, slope);
  }
};

template <int kCount>
struct Softcap {
  SoftcapRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> y = load<kCount>(run.x, row * run.x.stride + column);
    for (int i = 0; i < kCount; ++i) y.at[i] = run.cap * tanhf(y.at[i] / run.cap);
    store(run.y, row * run.y.stride + column, y);
  }
};

template <int kCount>
struct SoftcapGrad {
  SoftcapGradRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> dx = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> y = load<kCount>(run.y, row * run.y.stride + column);
    for (int i = 0; i < kCount; ++i) {
      const float share = y.at[i] / run.cap;
      dx.at[i] *= 1.0F - share * share;
    }
    store(run.dx, row * run.dx.stride + column, dx);
  }
};

// Of a gate: what `up` is multiplied by, and its derivative.
struct Activated {
  float value, slope;
};

struct SigmoidGate {
  static __device__ Activated at(float x) {
    const float s = sigmoid(x);
    return {s, s * (1.0F - s)};
  }
};

// The value is that of silu_mul_of.
struct SiluGate {
  static __device__ Activated at(float x) {
    const float s = sigmoid(x);
    return {x * s, s * (1.0F + x * (1.0F - s))};
  }
};

struct BareGate {
  static __device__ Activated at(float x) { return {x, 1.0F}; }
};

template <bool kTanh>
struct GeluOfGate {
  static __device__ Activated at(float x) {
    const GeluGate gate = gelu_gate(x, kTanh);
    return {x * gate.factor, gate.factor + x * gate.slope};
  }
};

template <typename Activation>
struct Gated {
  template <int kCount>
  struct Mul {
    GatedMulRun run;
    __device__ void operator()(int64_t row, int64_t item) const {
      const int64_t column = item * kCount;
      const Elements<kCount> gate = load<kCount>(run.gate, row * run.gate.stride + column);
      Elements<kCount> y = load<kCount>(run.up, row * run.up.stride + column);
      for (int i = 0; i < kCount; ++i) y.at[i] *= Activation::at(gate.at[i]).value;
      store(run.y, row * run.y.stride + column, y);
    }
  };

  template <int kCount>
  struct Grad {
    GatedMulGradRun run;
    __device__ void operator()(int64_t row, int64_t item) const {
      const int64_t column = item * kCount;
      const Elements<kCount> dy = load<kCount>(run.dy, row * run.dy.stride + column);
      const Elements<kCount> gate = load<kCount>(run.gate, row * run.gate.stride + column);
      const Elements<kCount> up = load<kCount>(run.up, row * run.up.stride + column);
      Elements<kCount> dgate;
      Elements<kCount> dup;
      for (int i = 0; i < kCount; ++i) {
        const Activated activated = Activation::at(gate.at[i]);
        dgate.at[i] = dy.at[i] * up.at[i] * activated.slope;
        dup.at[i] = dy.at[i] * activated.value;
      }
      store(run.dgate, row * run.dgate.stride + column, dgate);
      store(run.dup, row * run.dup.stride + column, dup);
    }
  };
};

// kCount pairs of a gate and an up, as two pieces of kCount elements.
template <int kCount>
struct GatePairs {
  Elements<kCount> half[2];
  __device__ GatePairs(const DeviceRows& x, int64_t offset)
      : half{load<kCount>(x, offset), load<kCount>(x, offset + kCount)} {}
  __device__ void store_to(const DeviceRows& x, int64_t offset) const {
    store(x, offset, half[0]);
    store(x, offset + kCount, half[1]);
  }
  __device__ float& element(int i) { return half[i / kCount].at[i % kCount]; }
  __device__ float& gate(int i) { return element(2 * i); }
  __device__ float& up(int i) { return element(2 * i + 1); }
};

// NaN stays NaN.
__device__ float at_most(float x, float limit) { return x > limit ? limit : x; }
__device__ float within(float x, float limit) {
  return x > limit ? limit : x < -limit ? -limit : x;
}

template <int kCount>
struct ClampedSwiglu {
  ClampedSwigluRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    GatePairs<kCount> pairs(run.gate_up, row * run.gate_up.stride + 2 * column);
    Elements<kCount> y;
    for (int i = 0; i < kCount; ++i) {
      const float gate = at_most(pairs.gate(i), run.limit);
      y.at[i] = (within(pairs.up(i), run.limit) + 1.0F) * (gate * sigmoid(run.alpha * gate));
    }
    store(run.y, row * run.y.stride + column, y);
  }
};

// Clamped elements have a gradient of 0.
template <int kCount>
struct ClampedSwigluGrad {
  ClampedSwigluGradRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    const Elements<kCount> dy = load<kCount>(run.dy, row * run.dy.stride + column);
    GatePairs<kCount> pairs(run.gate_up, row * run.gate_up.stride + 2 * column);
    for (int i = 0; i < kCount; ++i) {
      const float gate = at_most(pairs.gate(i), run.limit);
      const float up = within(pairs.up(i), run.limit);
      const float s = sigmoid(run.alpha * gate);
      const float slope = s * (1.0F + run.alpha * gate * (1.0F - s));
      pairs.gate(i) = pairs.gate(i) > run.limit ? 0.0F : dy.at[i] * (up + 1.0F) * slope;
      pairs.up(i) = pairs.up(i) == up ? dy.at[i] * gate * s : 0.0F;
    }
    pairs.store_to(run.dgate_up, row * run.dgate_up.stride + 2 * column);
  }
};

}  // namespace

void gelu(const GeluRun& run, cudaStream_t stream) { over_elements<Gelu>(run, stream); }
void gelu_grad(const GeluGradRun& run, cudaStream_t stream) {
  over_elements<GeluGrad>(run, stream);
}

void relu(const ReluRun& run, cudaStream_t stream) { over_elements<Relu>(run, stream); }
void relu_grad(const ReluGradRun& run, cudaStream_t stream) {
  over_elements<ReluGrad>(run, stream);
}

void xielu(const XieluRun& run, cudaStream_t stream) { over_elements<Xielu>(run, stream); }
void xielu_grad(const XieluGradRun& run, cudaStream_t stream) {
  over_elements<XieluGrad>(run, stream);
}
void xielu_slope(const XieluSlopeRun& run, cudaStream_t stream) {
  over_elements<XieluSlope>(run, stream);
}

void softcap(const SoftcapRun& run, cudaStream_t stream) { over_elements<Softcap>(run, stream); }
void softcap_grad(const SoftcapGradRun& run, cudaStream_t stream) {
  over_elements<SoftcapGrad>(run, stream);
}

void gated_mul(const GatedMulRun& run, cudaStream_t stream) {
  switch (run.activation) {
    case GateActivation::sigmoid:
      return over_elements<Gated<SigmoidGate>::Mul>(run, stream);
    case GateActivation::silu:
      return over_elements<Gated<SiluGate>::Mul>(run, stream);
    case GateActivation::gelu:
      return over_elements<Gated<GeluOfGate<false>>::Mul>(run, stream);
    case GateActivation::gelu_tanh:
      return over_elements<Gated<GeluOfGate<true>>::Mul>(run, stream);
    case GateActivation::none:
      return over_elements<Gated<BareGate>::Mul>(run, stream);
  }
}
void gated_mul_grad(const GatedMulGradRun& run, cudaStream_t stream) {
  switch (run.activation) {
    case GateActivation::sigmoid:
      return over_elements<Gated<SigmoidGate>::Grad>(run, stream);
    case GateActivation::silu:
      return over_elements<Gated<SiluGate>::Grad>(run, stream);
    case GateActivation::gelu:
      return over_elements<Gated<GeluOfGate<false>>::Grad>(run, stream);
    case GateActivation::gelu_tanh:
      return over_elements<Gated<GeluOfGate<true>>::Grad>(run, stream);
    case GateActivation::none:
      return over_elements<Gated<BareGate>::Grad>(run, stream);
  }
}

void clamped_swiglu(const ClampedSwigluRun& run, cudaStream_t stream) {
  over_elements<ClampedSwiglu>(run, stream);
}
void clamped_swiglu_grad(const ClampedSwigluGradRun& run, cudaStream_t stream) {
  over_elements<ClampedSwigluGrad>(run, stream);
}

}  // namespace snug::backends::cuda
