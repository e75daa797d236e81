#include "program/kinds/column_scale.h"

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

// One number for each column, or for as many neighbouring ones.
void check_gains(const ShapeRule::NamedTensor& gain, int64_t columns, ShapeRule& rule) {
  const int64_t gains = gain.tensor.shape.elements();
  const bool divides = gains > 0 && columns % gains == 0;
  rule.shape(gain, Shape{divides ? gains : columns});
}

std::string shape_error(const ScaleColumns& scale, const OperationView& view) {
  ShapeRule rule;
  const Tensor& x = view[ScaleColumns::kX];
  const Tensor& gain = view[ScaleColumns::kGain];
  const Tensor& y = view[ScaleColumns::kY];
  rule.rank({"x", x}, 2);
  check_gains({"gain", gain}, x.shape.columns(), rule);
  if (scale.divided) rule.measure({"divisor", view[ScaleColumns::kDivisor]}, gain.shape);
  rule.shape({"y", y}, x.shape);
  rule.mixed_types({{"x", x}, {"gain", gain}, {"y", y}});
  return rule.error();
}

std::string shape_error(const ColumnGainGrad& grad, const OperationView& view) {
  ShapeRule rule;
  const Tensor& dy = view[ColumnGainGrad::kDY];
  const Tensor& x = view[ColumnGainGrad::kX];
  const Tensor& dgain = view[ColumnGainGrad::kDGain];
  rule.rank({"dy", dy}, 2);
  rule.shape({"x", x}, dy.shape);
  check_gains({"dgain", dgain}, dy.shape.columns(), rule);
  if (grad.divided) rule.measure({"divisor", view[ColumnGainGrad::kDivisor]}, dgain.shape);
  rule.mixed_types({{"dy", dy}, {"x", x}, {"dgain", dgain}});
  return rule.error();
}

Cost cost(const ScaleColumns&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ScaleColumns::kY].shape.elements(), 1);
}

Cost cost(const ColumnGainGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ColumnGainGrad::kDY].shape.elements(), 2);
}

// The sums read x and dy before dx may take the bytes of dy.
void differentiate(const ScaleColumns& scale, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, ScaleColumns::kY));
  if (dy == kNone) return;
  const TensorId x = id_of(operation, ScaleColumns::kX);
  const TensorId gain = id_of(operation, ScaleColumns::kGain);
  std::vector<TensorId> divisor;
  if (scale.divided) divisor = {id_of(operation, ScaleColumns::kDivisor)};
  const auto emit = [&](Attributes attributes, std::vector<TensorId> reads, TensorId write) {
    reads.insert(reads.end(), divisor.begin(), divisor.end());
    tape.emit(std::move(attributes), std::move(reads), {write});
  };
  if (tape.wants(gain))
    emit(ColumnGainGrad{.divided = scale.divided}, {dy, x}, tape.contribute(gain));
  if (tape.wants(x)) emit(scale, {dy, gain}, tape.contribute(x));
}

InPlacePairs in_place_pairs(const ScaleColumns& scale) {
  return in_place(scale, {{ScaleColumns::kY, ScaleColumns::kX}});
}

}  // namespace

SNUG_DEFINE_KIND(ScaleColumns, .differentiate = differentiate, .in_place_pairs = in_place_pairs);
SNUG_DEFINE_KIND(ColumnGainGrad);

}  // namespace snug::program
