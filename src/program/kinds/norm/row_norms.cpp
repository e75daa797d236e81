#include "program/kinds/norm/row_norms.h"

#include <algorithm>
#include <cmath>

#include "program/kinds/functions.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const RowNorms& row_norms, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& w = view[RowNorms::kW];
  rule.require(std::isfinite(row_norms.alpha), "has an alpha that is not finite");
  rule.rank(RowNorms::kW, 2);
  const int64_t out = w.shape[row_norms.transposed ? 1 : 0];
  const int64_t in = w.shape[row_norms.transposed ? 0 : 1];
  rule.measure(RowNorms::kNorms, Shape{out});
  rule.mixed_types({RowNorms::kW, RowNorms::kNorms});
  if (!row_norms.low_rank) return rule.error();
  const Tensor& a = view[RowNorms::kA];
  rule.rank(RowNorms::kA, 2);
  rule.shape(RowNorms::kA, Shape{a.shape.rows(), in});
  rule.shape(RowNorms::kB, Shape{out, a.shape.rows()});
  rule.mixed_types({RowNorms::kW, RowNorms::kA, RowNorms::kB});
  return rule.error();
}

// Operations per element of the weight: a product and a sum for each rank of the adapter, and two
// for its square.
Cost cost(const RowNorms& row_norms, const OperationView& view, const Extent&) {
  const int64_t rank = row_norms.low_rank ? view[RowNorms::kA].shape.rows() : 0;
  return streaming_cost(view, view[RowNorms::kW].shape.elements(),
                        2.0 * static_cast<double>(rank + 1));
}

// With an adapter it is bound by arithmetic rather than by memory.
RateKey rate_key(const RowNorms& row_norms, const OperationView& view, const Extent& extent) {
  const Cost work = cost(row_norms, view, extent);
  RateKey key = key_of_bytes(view, work);
  if (!row_norms.low_rank) return key;
  key.shape = {std::max(1.0, work.flops)};
  key.unit = Work::flops;
  key.multiplies = DType::f32;
  return key;
}

}  // namespace

SNUG_DEFINE_KIND(RowNorms, .rate_key = rate_key);

}  // namespace snug::program
