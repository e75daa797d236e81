#include "program/kinds/attention/attention_sinks.h"

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const AttentionSinkGrad&, const OperationView& view) {
  using Grad = AttentionSinkGrad;
  ShapeRule rule(view);
  const Tensor& o = view[Grad::kO];
  const Tensor& sinks = view[Grad::kSinks];
  rule.rank(Grad::kO, 2);
  rule.rank(Grad::kSinks, 1);
  const int64_t heads = sinks.shape.elements();
  rule.require(heads > 0 && o.shape.columns() % heads == 0,
               "has rows of o that are no whole heads");
  rule.shape(Grad::kDO, o.shape);
  rule.measure(Grad::kLse, Shape{heads, o.shape.rows()});
  rule.shape(Grad::kDSinks, sinks.shape);
  rule.mixed_types({Grad::kO, Grad::kDO, Grad::kSinks, Grad::kDSinks});
  return rule.error();
}

// Two operations per element for the dot products; the exponentials are few and not counted.
Cost cost(const AttentionSinkGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[AttentionSinkGrad::kO].shape.elements(), 2);
}

}  // namespace

SNUG_DEFINE_KIND(AttentionSinkGrad);

}  // namespace snug::program
