#include "backends/cpu/elementwise/kernels/gated_mul.h"

#include "backends/cpu/elementwise/kernels/gelu_gate.h"
#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// What the gradient dy of a product gives its gate and its up.
struct GateGradients {
  Float16Lanes dgate, dup;
};

SNUG_INLINE Float16Lanes sigmoid(Float16Lanes x) { return reciprocal(1.0F + exp(-x)); }

struct Sigmoid {
  SNUG_INLINE Float16Lanes of(Float16Lanes gate) { return sigmoid(gate); }
  // With s = sigmoid(gate): dgate = dy up s (1 - s), dup = dy s.
  SNUG_INLINE GateGradients gradients(Float16Lanes dy, Float16Lanes gate, Float16Lanes up) {
    const Float16Lanes s = sigmoid(gate);
    return {dy * s * up * (1.0F - s), dy * s};
  }
};

struct Silu {
  SNUG_INLINE Float16Lanes of(Float16Lanes gate) { return gate * sigmoid(gate); }
  // With s = sigmoid(gate): dgate = dy up s (1 + gate (1 - s)), dup = dy gate s.
  SNUG_INLINE GateGradients gradients(Float16Lanes dy, Float16Lanes gate, Float16Lanes up) {
    const Float16Lanes s = sigmoid(gate);
    return {dy * s * up * (1.0F + gate * (1.0F - s)), dy * s * gate};
  }
};

struct Bare {
  SNUG_INLINE Float16Lanes of(Float16Lanes gate) { return gate; }
  SNUG_INLINE GateGradients gradients(Float16Lanes dy, Float16Lanes gate, Float16Lanes up) {
    return {dy * up, dy * gate};
  }
};

template <typename Form>
struct Gelu {
  SNUG_INLINE Float16Lanes of(Float16Lanes gate) { return gate * Form::at(gate).factor; }
  // dgate = dy up (factor + gate slope), dup = dy gate factor, with factor and slope of
  // gelu_gate.h.
  SNUG_INLINE GateGradients gradients(Float16Lanes dy, Float16Lanes gate, Float16Lanes up) {
    const GeluGate of_gate = Form::at(gate);
    return {dy * up * (of_gate.factor + gate * of_gate.slope), dy * gate * of_gate.factor};
  }
};

template <typename Activation, typename X>
void forward(const void* gate_bytes, const void* up_bytes, void* y_bytes, int64_t n) {
  const X* gate = static_cast<const X*>(gate_bytes);
  const X* up = static_cast<const X*>(up_bytes);
  X* y = static_cast<X*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    store(y + i, Activation::of(load(gate + i, part)) * load(up + i, part), part);
  });
}

template <typename Activation, typename X>
void backward(const GatedMulRun& run) {
  const X* dy = static_cast<const X*>(run.dy);
  const X* gate = static_cast<const X*>(run.gate);
  const X* up = static_cast<const X*>(run.up);
  X* dgate = static_cast<X*>(run.dgate);
  X* dup = static_cast<X*>(run.dup);
  for_each_lanes(run.n, [=](int64_t i, auto part) {
    const GateGradients all =
        Activation::gradients(load(dy + i, part), load(gate + i, part), load(up + i, part));
    store(dgate + i, all.dgate, part);
    store(dup + i, all.dup, part);
  });
}

}  // namespace

extern const GatedMulKernels kGatedMulKernels;
const GatedMulKernels kGatedMulKernels = {
    .forward = {SNUG_BY_ELEMENT(forward, Sigmoid), SNUG_BY_ELEMENT(forward, Silu),
                SNUG_BY_ELEMENT(forward, Gelu<NormalGate>),
                SNUG_BY_ELEMENT(forward, Gelu<TanhGate>), SNUG_BY_ELEMENT(forward, Bare)},
    .backward = {SNUG_BY_ELEMENT(backward, Sigmoid), SNUG_BY_ELEMENT(backward, Silu),
                 SNUG_BY_ELEMENT(backward, Gelu<NormalGate>),
                 SNUG_BY_ELEMENT(backward, Gelu<TanhGate>), SNUG_BY_ELEMENT(backward, Bare)},
};

}  // namespace snug::backends::cpu::SNUG_ISA
