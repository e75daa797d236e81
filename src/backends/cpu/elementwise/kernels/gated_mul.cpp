#include "backends/cpu/elementwise/kernels/gated_mul.h"

#include "backends/cpu/elementwise/kernels/gelu_gate.h"
#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// Of a gate: what `up` is multiplied by, and its derivative.
struct Activated {
  Float16Lanes value, slope;
};

struct Sigmoid {
  SNUG_INLINE Activated at(Float16Lanes x) {
    const Float16Lanes s = reciprocal(1.0F + exp(-x));
    return {s, s * (1.0F - s)};
  }
};

struct Silu {
  SNUG_INLINE Activated at(Float16Lanes x) {
    const Float16Lanes s = reciprocal(1.0F + exp(-x));
    return {x * s, s * (1.0F + x * (1.0F - s))};
  }
};

template <typename Gate>
struct Gelu {
  SNUG_INLINE Activated at(Float16Lanes x) {
    const GeluGate gate = Gate::at(x);
    return {x * gate.factor, gate.factor + x * gate.slope};
  }
};

template <typename Activation, typename X>
void forward(const void* gate_bytes, const void* up_bytes, void* y_bytes, int64_t n) {
  const X* gate = static_cast<const X*>(gate_bytes);
  const X* up = static_cast<const X*>(up_bytes);
  X* y = static_cast<X*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    store(y + i, Activation::at(load(gate + i, part)).value * load(up + i, part), part);
  });
}

// dgate = dy up slope, dup = dy value.
template <typename Activation, typename X>
void backward(const GatedMulRun& run) {
  const X* dy = static_cast<const X*>(run.dy);
  const X* gate = static_cast<const X*>(run.gate);
  const X* up = static_cast<const X*>(run.up);
  X* dgate = static_cast<X*>(run.dgate);
  X* dup = static_cast<X*>(run.dup);
  for_each_lanes(run.n, [=](int64_t i, auto part) {
    const Activated activated = Activation::at(load(gate + i, part));
    const Float16Lanes u = load(up + i, part);
    const Float16Lanes d = load(dy + i, part);
    store(dgate + i, d * u * activated.slope, part);
    store(dup + i, d * activated.value, part);
  });
}

}  // namespace

extern const GatedMulKernels kGatedMulKernels;
const GatedMulKernels kGatedMulKernels = {
    .forward = {SNUG_BY_ELEMENT(forward, Sigmoid), SNUG_BY_ELEMENT(forward, Silu),
                SNUG_BY_ELEMENT(forward, Gelu<NormalGate>),
                SNUG_BY_ELEMENT(forward, Gelu<TanhGate>)},
    .backward = {SNUG_BY_ELEMENT(backward, Sigmoid), SNUG_BY_ELEMENT(backward, Silu),
                 SNUG_BY_ELEMENT(backward, Gelu<NormalGate>),
                 SNUG_BY_ELEMENT(backward, Gelu<TanhGate>)},
};

}  // namespace snug::backends::cpu::SNUG_ISA
