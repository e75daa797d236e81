// The kinds that multiply by an activated gate, and their gradients, as one: a backend has one
// function for all of them.
#pragma once

#include "backends/gate_activation.h"
#include "program/kinds/elementwise/gelu_mul.h"
#include "program/kinds/elementwise/multiply.h"
#include "program/kinds/elementwise/sigmoid_mul.h"
#include "program/kinds/elementwise/silu_mul.h"

namespace snug::backends {

inline GateActivation activation_of(const program::SigmoidMul&) { return GateActivation::sigmoid; }
inline GateActivation activation_of(const program::SigmoidMulGrad&) {
  return GateActivation::sigmoid;
}
inline GateActivation activation_of(const program::Multiply&) { return GateActivation::none; }
inline GateActivation activation_of(const program::MultiplyGrad&) { return GateActivation::none; }
inline GateActivation activation_of(const program::SiluMul&) { return GateActivation::silu; }
inline GateActivation activation_of(const program::SiluMulGrad&) { return GateActivation::silu; }
inline GateActivation activation_of(const program::GeluMul& product) {
  return product.tanh ? GateActivation::gelu_tanh : GateActivation::gelu;
}
inline GateActivation activation_of(const program::GeluMulGrad& grad) {
  return grad.tanh ? GateActivation::gelu_tanh : GateActivation::gelu;
}

template <typename Kind>
concept GatedProduct = requires(const Kind& kind) {
  activation_of(kind);
  Kind::kY;
};
template <typename Kind>
concept GatedProductGrad = requires(const Kind& kind) {
  activation_of(kind);
  Kind::kDGate;
};

}  // namespace snug::backends
