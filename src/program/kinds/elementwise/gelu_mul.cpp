#include "program/kinds/elementwise/gelu_mul.h"

#include "program/kinds/elementwise/gated.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const GeluMul&, const OperationView& view) {
  return gated_shape_error<GeluMul>(view);
}

std::string shape_error(const GeluMulGrad&, const OperationView& view) {
  return gated_grad_shape_error<GeluMulGrad>(view);
}

// Operations per element: gelu's factor (4) and two products (2).
Cost cost(const GeluMul&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[GeluMul::kY].shape.elements(), 6);
}

// Operations per element: gelu's factor (4) and its slope (3), dup (2), and dgate = dy * up *
// (factor + gate * slope) (4).
Cost cost(const GeluMulGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[GeluMulGrad::kDGate].shape.elements(), 13);
}

void differentiate(const GeluMul& gelu_mul, const Operation& operation, Tape& tape) {
  differentiate_gated<GeluMul>(GeluMulGrad{gelu_mul.tanh}, operation, tape);
}

}  // namespace

SNUG_DEFINE_KIND(GeluMul, .differentiate = differentiate);
SNUG_DEFINE_KIND(GeluMulGrad);

}  // namespace snug::program
