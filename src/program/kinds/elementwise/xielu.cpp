#include "program/kinds/elementwise/xielu.h"

#include <vector>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// x is (tokens, n), the learned numbers and the constants have one element.
template <typename Struct>
ShapeRule xielu_rule(const OperationView& view) {
  ShapeRule rule(view);
  rule.rank(Struct::kX, 2);
  rule.shape(Struct::kAlphaP, Shape{1});
  rule.shape(Struct::kAlphaN, Shape{1});
  rule.measure(Struct::kBeta, Shape{});
  rule.measure(Struct::kEpsilon, Shape{});
  rule.mixed_types({Struct::kX, Struct::kAlphaP, Struct::kAlphaN, Struct::kBeta, Struct::kEpsilon});
  return rule;
}

std::string shape_error(const Xielu&, const OperationView& view) {
  ShapeRule rule = xielu_rule<Xielu>(view);
  rule.shape(Xielu::kY, view[Xielu::kX].shape);
  rule.mixed_types({Xielu::kX, Xielu::kY});
  return rule.error();
}

std::string shape_error(const XieluGrad&, const OperationView& view) {
  ShapeRule rule = xielu_rule<XieluGrad>(view);
  rule.shape(XieluGrad::kDY, view[XieluGrad::kX].shape);
  rule.shape(XieluGrad::kDX, view[XieluGrad::kX].shape);
  rule.mixed_types({XieluGrad::kX, XieluGrad::kDY, XieluGrad::kDX});
  return rule.error();
}

std::string shape_error(const XieluSlope&, const OperationView& view) {
  ShapeRule rule(view);
  rule.rank(XieluSlope::kX, 2);
  rule.shape(XieluSlope::kAlpha, Shape{1});
  rule.measure(XieluSlope::kEpsilon, Shape{});
  rule.shape(XieluSlope::kSlope, view[XieluSlope::kX].shape);
  rule.mixed_types({XieluSlope::kX, XieluSlope::kAlpha, XieluSlope::kEpsilon, XieluSlope::kSlope});
  return rule.error();
}

// Operations per element: an exponential (4), its difference from the line, a factor and the linear
// part (4).
Cost cost(const Xielu&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Xielu::kY].shape.elements(), 8);
}
Cost cost(const XieluGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[XieluGrad::kDX].shape.elements(), 8);
}
Cost cost(const XieluSlope&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[XieluSlope::kSlope].shape.elements(), 7);
}

// The slopes must read x before dx may overwrite it.
void differentiate(const Xielu&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Xielu::kY));
  if (dy == kNone) return;
  const TensorId x = id_of(operation, Xielu::kX);
  const TensorId alpha_p = id_of(operation, Xielu::kAlphaP);
  const TensorId alpha_n = id_of(operation, Xielu::kAlphaN);
  const TensorId epsilon = id_of(operation, Xielu::kEpsilon);
  for (const TensorId alpha : {alpha_p, alpha_n}) {
    if (!tape.wants(alpha)) continue;
    const Tensor input = tape.program().tensor(x);  // a copy, since the table may grow
    const TensorId slope = tape.temporary("slope", input.shape, input.dtype);
    tape.emit(XieluSlope{.negative = alpha == alpha_n}, {x, alpha, epsilon}, {slope});
    tape.emit(ColumnGainGrad{}, {dy, slope}, {tape.contribute(alpha)});
  }
  if (!tape.wants(x)) return;
  const TensorId beta = id_of(operation, Xielu::kBeta);
  tape.emit(XieluGrad{}, {dy, x, alpha_p, alpha_n, beta, epsilon}, {tape.contribute(x)});
}

}  // namespace

SNUG_DEFINE_KIND(Xielu, .differentiate = differentiate);
SNUG_DEFINE_KIND(XieluGrad);
SNUG_DEFINE_KIND(XieluSlope);

}  // namespace snug::program
