#include "program/kinds/expert/top_k.h"

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const TopK& top, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[TopK::kX];
  rule.rank(TopK::kX, 2);
  rule.measure(TopK::kX, x.shape);
  rule.require(top.k >= 1, "k is at least 1");
  rule.require(x.shape.columns() >= 1, "a row has elements");
  rule.measure(TopK::kValues, Shape{x.shape[0], top.k});
  rule.index(TopK::kIds, Shape{x.shape[0], top.k});
  return rule.error();
}

// One comparison per element. On a device, one launch finds the largest of each block, and a second
// one the largest of these.
Cost cost(const TopK&, const OperationView& view, const Extent&) {
  Cost cost = streaming_cost(view, view[TopK::kX].shape.elements(), 1);
  cost.launches = 2;
  return cost;
}

}  // namespace

SNUG_DEFINE_KIND(TopK);

}  // namespace snug::program
