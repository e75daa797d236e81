#include "program/kinds/elementwise/silu_mul.h"

#include "program/kinds/elementwise/gated.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const SiluMul&, const OperationView& view) {
  return gated_shape_error<SiluMul>(view);
}

std::string shape_error(const SiluMulGrad&, const OperationView& view) {
  return gated_grad_shape_error<SiluMulGrad>(view);
}

// Operations per element: the sigmoid (3) and two products (2).
Cost cost(const SiluMul&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SiluMul::kY].shape.elements(), 5);
}

// Operations per element: the sigmoid (3), dup (2), and dgate = dy * up * s * (1 + gate * (1 - s))
// (5).
Cost cost(const SiluMulGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SiluMulGrad::kDGate].shape.elements(), 10);
}

void differentiate(const SiluMul&, const Operation& operation, Tape& tape) {
  differentiate_gated<SiluMul>(SiluMulGrad{}, operation, tape);
}

}  // namespace

SNUG_DEFINE_KIND(SiluMul, .differentiate = differentiate);
SNUG_DEFINE_KIND(SiluMulGrad);

}  // namespace snug::program
