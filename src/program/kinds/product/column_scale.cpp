#include "program/kinds/product/column_scale.h"

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// One number for each column, or one for each group of adjacent columns.
template <typename Struct>
void check_gains(const Operand<Struct>& gain, int64_t columns, const OperationView& view,
                 ShapeRule& rule) {
  const int64_t gains = view[gain].shape.elements();
  const bool divides = gains > 0 && columns % gains == 0;
  rule.shape(gain, Shape{divides ? gains : columns});
}

std::string shape_error(const ScaleColumns& scale, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[ScaleColumns::kX];
  const Tensor& gain = view[ScaleColumns::kGain];
  rule.rank(ScaleColumns::kX, 2);
  check_gains(ScaleColumns::kGain, x.shape.columns(), view, rule);
  if (scale.divided) rule.measure(ScaleColumns::kDivisor, gain.shape);
  rule.shape(ScaleColumns::kY, x.shape);
  rule.mixed_types({ScaleColumns::kX, ScaleColumns::kGain, ScaleColumns::kY});
  return rule.error();
}

std::string shape_error(const ColumnGainGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& dy = view[ColumnGainGrad::kDY];
  const Tensor& dgain = view[ColumnGainGrad::kDGain];
  rule.rank(ColumnGainGrad::kDY, 2);
  rule.shape(ColumnGainGrad::kX, dy.shape);
  check_gains(ColumnGainGrad::kDGain, dy.shape.columns(), view, rule);
  if (grad.divided) rule.measure(ColumnGainGrad::kDivisor, dgain.shape);
  rule.mixed_types({ColumnGainGrad::kDY, ColumnGainGrad::kX, ColumnGainGrad::kDGain});
  return rule.error();
}

Cost cost(const ScaleColumns&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ScaleColumns::kY].shape.elements(), 1);
}

Cost cost(const ColumnGainGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ColumnGainGrad::kDY].shape.elements(), 2);
}

// The sums must read x and dy before dx may overwrite dy.
void differentiate(const ScaleColumns& scale, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, ScaleColumns::kY));
  if (dy == kNone) return;
  const TensorId x = id_of(operation, ScaleColumns::kX);
  const TensorId gain = id_of(operation, ScaleColumns::kGain);
  std::vector<TensorId> divisor;
  if (scale.divided) divisor = {id_of(operation, ScaleColumns::kDivisor)};
  const auto emit = [&](Attributes attributes, std::vector<TensorId> reads, TensorId write) {
    reads.insert(reads.end(), divisor.begin(), divisor.end());
    tape.emit(attributes, std::move(reads), {write});
  };
  if (tape.wants(gain))
    emit(ColumnGainGrad{.divided = scale.divided}, {dy, x}, tape.contribute(gain));
  if (tape.wants(x)) emit(scale, {dy, gain}, tape.contribute(x));
}

}  // namespace

SNUG_DEFINE_KIND(ScaleColumns, .differentiate = differentiate);
SNUG_DEFINE_KIND(ColumnGainGrad);

}  // namespace snug::program
