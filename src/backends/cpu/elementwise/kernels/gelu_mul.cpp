#include "backends/cpu/elementwise/kernels/gelu_mul.h"

#include "backends/cpu/elementwise/kernels/gelu_gate.h"
#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

template <typename Gate, typename X>
void forward(const void* gate_bytes, const void* up_bytes, void* y_bytes, int64_t n) {
  const X* gate = static_cast<const X*>(gate_bytes);
  const X* up = static_cast<const X*>(up_bytes);
  X* y = static_cast<X*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes g = load(gate + i, part);
    store(y + i, g * Gate::at(g).factor * load(up + i, part), part);
  });
}

// dgate = dy up (factor + gate slope), dup = dy gate factor, with factor and slope of gelu_gate.h.
template <typename Gate, typename X>
void backward(const GeluMulRun& run) {
  const X* dy = static_cast<const X*>(run.dy);
  const X* gate = static_cast<const X*>(run.gate);
  const X* up = static_cast<const X*>(run.up);
  X* dgate = static_cast<X*>(run.dgate);
  X* dup = static_cast<X*>(run.dup);
  for_each_lanes(run.n, [=](int64_t i, auto part) {
    const Float16Lanes g = load(gate + i, part);
    const Float16Lanes u = load(up + i, part);
    const Float16Lanes d = load(dy + i, part);
    const GeluGate of_gate = Gate::at(g);
    store(dgate + i, d * u * (of_gate.factor + g * of_gate.slope), part);
    store(dup + i, d * g * of_gate.factor, part);
  });
}

}  // namespace

extern const GeluMulKernels kGeluMulKernels;
const GeluMulKernels kGeluMulKernels = {
    .forward = {SNUG_BY_ELEMENT(forward, NormalGate), SNUG_BY_ELEMENT(forward, TanhGate)},
    .backward = {SNUG_BY_ELEMENT(backward, NormalGate), SNUG_BY_ELEMENT(backward, TanhGate)},
};

}  // namespace snug::backends::cpu::SNUG_ISA
