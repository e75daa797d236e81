#include "program/kinds/elementwise/softcap.h"

#include <cmath>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

bool is_cap(float cap) { return std::isfinite(cap) && cap > 0.0F; }

std::string shape_error(const Softcap& softcap, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(is_cap(softcap.cap), "has a cap that is not positive and finite");
  const Tensor& x = view[Softcap::kX];
  rule.rank(Softcap::kX, 2);
  rule.shape(Softcap::kY, x.shape);
  rule.mixed_types({Softcap::kX, Softcap::kY});
  return rule.error();
}

std::string shape_error(const SoftcapGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(is_cap(grad.cap), "has a cap that is not positive and finite");
  const Tensor& y = view[SoftcapGrad::kY];
  rule.rank(SoftcapGrad::kY, 2);
  rule.shape(SoftcapGrad::kDY, y.shape);
  rule.shape(SoftcapGrad::kDX, y.shape);
  rule.mixed_types({SoftcapGrad::kY, SoftcapGrad::kDY, SoftcapGrad::kDX});
  return rule.error();
}

// Operations per element: a quotient, tanh (4), a product (6 in all).
Cost cost(const Softcap&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Softcap::kY].shape.elements(), 6);
}

// Operations per element: a quotient, its square, a difference, a product (4).
Cost cost(const SoftcapGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SoftcapGrad::kDX].shape.elements(), 4);
}

void differentiate(const Softcap& softcap, const Operation& operation, Tape& tape) {
  const TensorId y = id_of(operation, Softcap::kY);
  const TensorId dy = tape.gradient(y);
  const TensorId x = id_of(operation, Softcap::kX);
  if (dy == kNone || !tape.wants(x)) return;
  tape.emit(SoftcapGrad{softcap.cap}, {dy, y}, {tape.contribute(x)});
}

}  // namespace

SNUG_DEFINE_KIND(Softcap, .differentiate = differentiate);
SNUG_DEFINE_KIND(SoftcapGrad);

}  // namespace snug::program
