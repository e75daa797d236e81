#include "program/kinds/recurrence/delta_gates.h"

#include <utility>
#include <vector>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

template <typename Struct>
ShapeRule gates_rule(const OperationView& view) {
  ShapeRule rule(view);
  rule.rank(Struct::kA, 2);
  if (!rule.error().empty()) return rule;
  const Shape& gates = view[Struct::kA].shape;
  rule.shape(Struct::kB, gates);
  rule.shape(Struct::kALog, Shape{gates[1]});
  rule.shape(Struct::kDtBias, Shape{gates[1]});
  rule.mixed_types({Struct::kA, Struct::kB, Struct::kALog, Struct::kDtBias});
  return rule;
}

std::string shape_error(const DeltaGates&, const OperationView& view) {
  ShapeRule rule = gates_rule<DeltaGates>(view);
  if (!rule.error().empty()) return rule.error();
  const Shape& gates = view[DeltaGates::kA].shape;
  rule.measure(DeltaGates::kG, gates);
  rule.measure(DeltaGates::kBeta, gates);
  rule.mixed_types({DeltaGates::kA, DeltaGates::kG, DeltaGates::kBeta});
  return rule.error();
}

std::string shape_error(const DeltaGatesGrad& grad, const OperationView& view) {
  using Grad = DeltaGatesGrad;
  ShapeRule rule = gates_rule<Grad>(view);
  if (!rule.error().empty()) return rule.error();
  const Shape& gates = view[Grad::kA].shape;
  rule.measure(Grad::kDG, gates);
  rule.measure(Grad::kDBeta, gates);
  rule.shape(Grad::kDA, gates);
  rule.shape(Grad::kDB, gates);
  rule.mixed_types({Grad::kA, Grad::kDG, Grad::kDBeta, Grad::kDA, Grad::kDB});
  if (grad.weight_gradient) {
    rule.shape(Grad::kDALog, Shape{gates[1]});
    rule.shape(Grad::kDDtBias, Shape{gates[1]});
    rule.mixed_types({Grad::kA, Grad::kDALog, Grad::kDDtBias});
  }
  return rule.error();
}

// Operations per element: softplus and its factor (6), a sigmoid (3).
Cost cost(const DeltaGates&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[DeltaGates::kA].shape.elements(), 9);
}

// The same again, two slopes (6), and the sums for the weights (4).
Cost cost(const DeltaGatesGrad& grad, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[DeltaGatesGrad::kA].shape.elements(),
                        grad.weight_gradient ? 19 : 15);
}

void differentiate(const DeltaGates&, const Operation& operation, Tape& tape) {
  const auto id = [&](const Operand<DeltaGates>& operand) { return id_of(operation, operand); };
  const TensorId a = id(DeltaGates::kA);
  const TensorId b = id(DeltaGates::kB);
  const TensorId a_log = id(DeltaGates::kALog);
  const TensorId dt_bias = id(DeltaGates::kDtBias);
  const TensorId dg = tape.gradient(id(DeltaGates::kG));
  const TensorId dbeta = tape.gradient(id(DeltaGates::kBeta));
  DeltaGatesGrad grad;
  grad.weight_gradient = tape.wants(a_log) || tape.wants(dt_bias);
  if (dg == kNone || dbeta == kNone || !(grad.weight_gradient || tape.wants(a) || tape.wants(b)))
    return;
  const auto gradient_of = [&](TensorId input_id, const char* suffix) {
    if (tape.wants(input_id)) return tape.contribute(input_id);
    const Tensor input = tape.program().tensor(input_id);  // a copy, since the table may grow
    return tape.temporary(suffix, input.shape, input.dtype);
  };
  std::vector<TensorId> writes{gradient_of(a, "da"), gradient_of(b, "db")};
  if (grad.weight_gradient) {
    writes.push_back(gradient_of(a_log, "da_log"));
    writes.push_back(gradient_of(dt_bias, "ddt_bias"));
  }
  tape.emit(grad, {dg, dbeta, a, b, a_log, dt_bias}, std::move(writes));
}

}  // namespace

SNUG_DEFINE_KIND(DeltaGates, .differentiate = differentiate);
SNUG_DEFINE_KIND(DeltaGatesGrad);

}  // namespace snug::program
