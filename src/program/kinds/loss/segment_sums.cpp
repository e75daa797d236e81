#include "program/kinds/loss/segment_sums.h"

#include <cmath>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Checks that there is a number for each token, a number for each segment, and the segments'
// bounds.
template <typename Struct>
void require_segments(const Struct& segments, const OperationView& view, ShapeRule& rule) {
  const Shape& sums = view[Struct::kSums].shape;
  rule.rank(Struct::kValues, 1);
  rule.rank(Struct::kSums, 1);
  rule.measure(Struct::kValues, view[Struct::kValues].shape);
  rule.measure(Struct::kSums, sums);
  rule.index(Struct::kBounds, Shape{sums.elements(), 2});
  rule.require(std::isfinite(segments.scale), "has a scale that is not finite");
}

std::string shape_error(const SumSegments& sum, const OperationView& view) {
  ShapeRule rule(view);
  require_segments(sum, view, rule);
  return rule.error();
}

std::string shape_error(const SpreadSegments& spread, const OperationView& view) {
  ShapeRule rule(view);
  require_segments(spread, view, rule);
  return rule.error();
}

std::string shape_error(const WeighRows&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[WeighRows::kX];
  rule.rank(WeighRows::kX, 2);
  rule.measure(WeighRows::kWeights, Shape{x.shape.rows()});
  rule.shape(WeighRows::kY, x.shape);
  rule.mixed_types({WeighRows::kX, WeighRows::kWeights, WeighRows::kY});
  return rule.error();
}

Cost cost(const SumSegments&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SumSegments::kValues].shape.elements(), 1);
}

Cost cost(const SpreadSegments&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SpreadSegments::kValues].shape.elements(), 1);
}

Cost cost(const WeighRows&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[WeighRows::kX].shape.elements(), 1);
}

void differentiate(const SumSegments& sum, const Operation& operation, Tape& tape) {
  const TensorId dsums = tape.gradient(id_of(operation, SumSegments::kSums));
  const TensorId values = id_of(operation, SumSegments::kValues);
  if (dsums == kNone || !tape.wants(values)) return;
  tape.emit(SpreadSegments{sum.scale}, {dsums, id_of(operation, SumSegments::kBounds)},
            {tape.contribute(values)});
}

}  // namespace

TensorId weigh_rows_later(TensorId x, TensorId losses, Tape& tape) {
  const Tensor rows = tape.program().tensor(x);  // copied, since the program's table grows
  const TensorId unweighed = tape.temporary("hidden", rows.shape, rows.dtype);
  tape.later([&tape, x, losses, unweighed] {
    const TensorId dlosses = tape.gradient(losses);
    if (dlosses == kNone) return;
    tape.emit(WeighRows{}, {unweighed, dlosses}, {tape.contribute(x)});
  });
  return unweighed;
}

SNUG_DEFINE_KIND(SumSegments, .differentiate = differentiate);
SNUG_DEFINE_KIND(SpreadSegments);
SNUG_DEFINE_KIND(WeighRows);

}  // namespace snug::program
