#include "program/kinds/recurrence/causal_convolution.h"

#include <utility>
#include <vector>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/recurrence/kept_places.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// x is (tokens, n), w (n, 1, width), and the bounds are pairs.
template <typename Struct>
ShapeRule convolution_rule(const OperationView& view) {
  ShapeRule rule(view);
  const Shape& filters = view[Struct::kW].shape;
  rule.rank(Struct::kX, 2);
  rule.rank(Struct::kW, 3);
  if (!rule.error().empty()) return rule;
  rule.shape(Struct::kW, Shape{view[Struct::kX].shape[1], 1, filters[2]});
  rule.require(filters[2] >= 1 && filters[2] <= kMostConvolutionWidth,
               "has a filter of no tokens, or of more than eight");
  rule.rank(Struct::kBounds, 2);
  rule.index(Struct::kBounds, Shape{view[Struct::kBounds].shape[0], 2});
  return rule;
}

std::string shape_error(const CausalConvolution& convolution, const OperationView& view) {
  using Convolution = CausalConvolution;
  ShapeRule rule = convolution_rule<Convolution>(view);
  if (!rule.error().empty()) return rule.error();
  rule.shape(Convolution::kY, view[Convolution::kX].shape);
  rule.mixed_types({Convolution::kX, Convolution::kW, Convolution::kY});
  if (!convolution.cached) return rule.error();
  rule.rank(Convolution::kState, 2);
  if (!rule.error().empty()) return rule.error();
  const int64_t kept = view[Convolution::kW].shape[2] - 1;
  rule.require(kept > 0, "keeps rows before a filter of one token");
  rule.index(Convolution::kSlots, view[Convolution::kBounds].shape);
  rule.shape(Convolution::kState,
             Shape{view[Convolution::kState].shape[0], kept * view[Convolution::kX].shape[1]});
  rule.same_type({Convolution::kX, Convolution::kState});
  return rule.error();
}

std::string shape_error(const CausalConvolutionGrad& grad, const OperationView& view) {
  using Grad = CausalConvolutionGrad;
  ShapeRule rule = convolution_rule<Grad>(view);
  if (!rule.error().empty()) return rule.error();
  rule.shape(Grad::kDY, view[Grad::kX].shape);
  rule.shape(Grad::kDX, view[Grad::kX].shape);
  rule.mixed_types({Grad::kX, Grad::kDY, Grad::kW, Grad::kDX});
  if (grad.weight_gradient) {
    rule.shape(Grad::kDW, view[Grad::kW].shape);
    rule.mixed_types({Grad::kX, Grad::kDW});
  }
  return rule.error();
}

double width_of(const Tensor& filters) { return static_cast<double>(filters.shape[2]); }

// Operations per element: a product and a sum for each token of the filter, and silu (4). Of the
// places for states those of the segments are read and written.
Cost cost(const CausalConvolution& convolution, const OperationView& view, const Extent&) {
  const double flops = 2.0 * width_of(view[CausalConvolution::kW]) + 4.0;
  Cost cost = streaming_cost(view, view[CausalConvolution::kX].shape.elements(), flops);
  if (convolution.cached)
    cost.bytes -= bytes_of_unused_places(view[CausalConvolution::kState],
                                         view[CausalConvolution::kBounds].shape[0]);
  return cost;
}

// The sums again, the slope of silu (6), and as many products for dx and for dw.
Cost cost(const CausalConvolutionGrad& grad, const OperationView& view, const Extent&) {
  const double passes = grad.weight_gradient ? 3.0 : 2.0;
  const double flops = passes * 2.0 * width_of(view[CausalConvolutionGrad::kW]) + 6.0;
  return streaming_cost(view, view[CausalConvolutionGrad::kX].shape.elements(), flops);
}

void differentiate(const CausalConvolution& convolution, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, CausalConvolution::kY));
  const TensorId x = id_of(operation, CausalConvolution::kX);
  const TensorId w = id_of(operation, CausalConvolution::kW);
  CausalConvolutionGrad grad;
  grad.weight_gradient = tape.wants(w);
  grad.plain = convolution.plain;
  if (dy == kNone || (!tape.wants(x) && !grad.weight_gradient)) return;
  const Tensor input = tape.program().tensor(x);  // a copy, since the table may grow
  std::vector<TensorId> writes{tape.wants(x) ? tape.contribute(x)
                                             : tape.temporary("dx", input.shape, input.dtype)};
  if (grad.weight_gradient) writes.push_back(tape.contribute(w));
  tape.emit(grad, {dy, x, w, id_of(operation, CausalConvolution::kBounds)}, std::move(writes));
}

}  // namespace

SNUG_DEFINE_KIND(CausalConvolution, .differentiate = differentiate);
SNUG_DEFINE_KIND(CausalConvolutionGrad);

}  // namespace snug::program
