#include "program/kinds/elementwise/multiply.h"

#include "program/kinds/elementwise/gated.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const Multiply&, const OperationView& view) {
  return gated_shape_error<Multiply>(view);
}

std::string shape_error(const MultiplyGrad&, const OperationView& view) {
  return gated_grad_shape_error<MultiplyGrad>(view);
}

Cost cost(const Multiply&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Multiply::kY].shape.elements(), 1);
}

Cost cost(const MultiplyGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[MultiplyGrad::kDGate].shape.elements(), 2);
}

void differentiate(const Multiply&, const Operation& operation, Tape& tape) {
  differentiate_gated<Multiply>(MultiplyGrad{}, operation, tape);
}

}  // namespace

SNUG_DEFINE_KIND(Multiply, .differentiate = differentiate);
SNUG_DEFINE_KIND(MultiplyGrad);

}  // namespace snug::program
