#include "program/kinds/elementwise/sigmoid_mul.h"

#include "program/kinds/elementwise/gated.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const SigmoidMul&, const OperationView& view) {
  return gated_shape_error<SigmoidMul>(view);
}

std::string shape_error(const SigmoidMulGrad&, const OperationView& view) {
  return gated_grad_shape_error<SigmoidMulGrad>(view);
}

// Operations per element: the sigmoid (3) and a product (1).
Cost cost(const SigmoidMul&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SigmoidMul::kY].shape.elements(), 4);
}

// Operations per element: the sigmoid (3), dup (1), and dgate = dy * up * s * (1 - s) (4).
Cost cost(const SigmoidMulGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SigmoidMulGrad::kDGate].shape.elements(), 8);
}

void differentiate(const SigmoidMul&, const Operation& operation, Tape& tape) {
  differentiate_gated<SigmoidMul>(SigmoidMulGrad{}, operation, tape);
}

}  // namespace

SNUG_DEFINE_KIND(SigmoidMul, .differentiate = differentiate);
SNUG_DEFINE_KIND(SigmoidMulGrad);

}  // namespace snug::program
