#include "backends/cpu/elementwise/kernels/clamped_swiglu.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// Sixteen pairs.
struct Pairs {
  Float16Lanes gate, up;
};

// Loads pairs of fp32 or fp16; those of bf16 are below.
template <typename X>
SNUG_INLINE Pairs load_pairs(const X* x) {
  const Float16Lanes a = load(x);
  const Float16Lanes b = load(x + kLanes);
  return {lanes_as<Float16Lanes>(__builtin_shufflevector(whole(a), whole(b), 0, 2, 4, 6, 8, 10, 12,
                                                         14, 16, 18, 20, 22, 24, 26, 28, 30)),
          lanes_as<Float16Lanes>(__builtin_shufflevector(whole(a), whole(b), 1, 3, 5, 7, 9, 11, 13,
                                                         15, 17, 19, 21, 23, 25, 27, 29, 31))};
}

// A pair of bf16 is one 32-bit word, with the gate in its lower half.
SNUG_INLINE Pairs load_pairs(const uint16_t* x) {
  Uint16Lanes words;
  __builtin_memcpy(&words, x, sizeof words);
  return {lanes_as<Float16Lanes>(words << 16), lanes_as<Float16Lanes>(words & 0xffff0000U)};
}

template <typename X>
SNUG_INLINE void store_pairs(X* out, const Pairs& pairs) {
  store(out, lanes_as<Float16Lanes>(__builtin_shufflevector(whole(pairs.gate), whole(pairs.up), 0,
                                                            16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                                            6, 22, 7, 23)));
  store(out + kLanes, lanes_as<Float16Lanes>(
                          __builtin_shufflevector(whole(pairs.gate), whole(pairs.up), 8, 24, 9, 25,
                                                  10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)));
}

SNUG_INLINE void store_pairs(uint16_t* out, const Pairs& pairs) {
  const Uint16Lanes words = widen(to_bf16(pairs.gate)) | (widen(to_bf16(pairs.up)) << 16);
  __builtin_memcpy(out, &words, sizeof words);
}

template <typename X>
SNUG_INLINE Pairs load_pairs(const X* x, Whole) {
  return load_pairs(x);
}
template <typename X>
SNUG_INLINE Pairs load_pairs(const X* x, Part part) {
  X all[2 * kLanes] = {};
  __builtin_memcpy(all, x, static_cast<uint64_t>(2 * part.count) * sizeof(X));
  return load_pairs(all);
}

template <typename X>
SNUG_INLINE void store_pairs(X* out, const Pairs& pairs, Whole) {
  store_pairs(out, pairs);
}
template <typename X>
SNUG_INLINE void store_pairs(X* out, const Pairs& pairs, Part part) {
  X all[2 * kLanes];
  store_pairs(all, pairs);
  __builtin_memcpy(out, all, static_cast<uint64_t>(2 * part.count) * sizeof(X));
}

// Clamps pairs as the form says; NaN stays NaN.
SNUG_INLINE Pairs clamped(const ClampedSwigluForm& form, const Pairs& pairs) {
  const Float16Lanes limit = splat(form.limit);
  return {minimum(limit, pairs.gate), maximum(-limit, minimum(limit, pairs.up))};
}

SNUG_INLINE Float16Lanes gate_share(const ClampedSwigluForm& form, Float16Lanes gate) {
  return reciprocal(1.0F + exp(-form.alpha * gate));
}

template <typename X>
void forward(const ClampedSwigluForm& form, const void* gate_up_bytes, void* y_bytes, int64_t n) {
  const X* gate_up = static_cast<const X*>(gate_up_bytes);
  X* y = static_cast<X*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    const auto [gate, up] = clamped(form, load_pairs(gate_up + 2 * i, part));
    store(y + i, (up + 1.0F) * (gate * gate_share(form, gate)), part);
  });
}

// With s = sigmoid(alpha g') and clamped g' and u': dgate = dy (u' + 1) s (1 + alpha g' (1 - s)),
// dup = dy g' s; 0 where the clamp took effect.
template <typename X>
void backward(const ClampedSwigluRun& run) {
  const X* dy = static_cast<const X*>(run.dy);
  const X* gate_up = static_cast<const X*>(run.gate_up);
  X* dgate_up = static_cast<X*>(run.dgate_up);
  const ClampedSwigluForm form = run.form;
  for_each_lanes(run.n, [=](int64_t i, auto part) {
    const Pairs given = load_pairs(gate_up + 2 * i, part);
    const auto [gate, up] = clamped(form, given);
    const Float16Lanes s = gate_share(form, gate);
    const Float16Lanes dys = load(dy + i, part) * s;
    const Float16Lanes dgate = dys * (up + 1.0F) * (1.0F + form.alpha * gate * (1.0F - s));
    const Float16Lanes none = {};
    store_pairs(dgate_up + 2 * i,
                {select(given.gate > gate, none, dgate), select(given.up != up, none, dys * gate)},
                part);
  });
}

}  // namespace

extern const ClampedSwigluKernels kClampedSwigluKernels;
const ClampedSwigluKernels kClampedSwigluKernels = {.forward = SNUG_BY_ELEMENT(forward),
                                                    .backward = SNUG_BY_ELEMENT(backward)};

}  // namespace snug::backends::cpu::SNUG_ISA
