#include "backends/cpu/elementwise/kernels/sigmoid_mul.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

SNUG_INLINE Float16Lanes sigmoid(Float16Lanes x) { return reciprocal(1.0F + exp(-x)); }

template <typename X>
void forward(const void* gate_bytes, const void* up_bytes, void* y_bytes, int64_t n) {
  const X* gate = static_cast<const X*>(gate_bytes);
  const X* up = static_cast<const X*>(up_bytes);
  X* y = static_cast<X*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes g = load(gate + i, part);
    store(y + i, sigmoid(g) * load(up + i, part), part);
  });
}

// With s = sigmoid(gate): dgate = dy up s (1 - s), dup = dy s.
template <typename X>
void backward(const SigmoidMulRun& run) {
  const X* dy = static_cast<const X*>(run.dy);
  const X* gate = static_cast<const X*>(run.gate);
  const X* up = static_cast<const X*>(run.up);
  X* dgate = static_cast<X*>(run.dgate);
  X* dup = static_cast<X*>(run.dup);
  for_each_lanes(run.n, [=](int64_t i, auto part) {
    const Float16Lanes s = sigmoid(load(gate + i, part));
    const Float16Lanes u = load(up + i, part);
    const Float16Lanes dys = load(dy + i, part) * s;
    store(dgate + i, dys * u * (1.0F - s), part);
    store(dup + i, dys, part);
  });
}

}  // namespace

extern const SigmoidMulKernels kSigmoidMulKernels;
const SigmoidMulKernels kSigmoidMulKernels = {.forward = SNUG_BY_ELEMENT(forward),
                                              .backward = SNUG_BY_ELEMENT(backward)};

}  // namespace snug::backends::cpu::SNUG_ISA
