#include "program/kinds/gelu_mul.h"

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

std::string shape_error(const GeluMul&, const OperationView& view) {
  ShapeRule rule;
  const Tensor& gate = view[GeluMul::kGate];
  rule.rank({"gate", gate}, 2);
  rule.shape({"up", view[GeluMul::kUp]}, gate.shape);
  rule.shape({"y", view[GeluMul::kY]}, gate.shape);
  rule.mixed_types({{"gate", gate}, {"up", view[GeluMul::kUp]}, {"y", view[GeluMul::kY]}});
  return rule.error();
}

std::string shape_error(const GeluMulGrad&, const OperationView& view) {
  ShapeRule rule;
  const Tensor& gate = view[GeluMulGrad::kGate];
  rule.rank({"gate", gate}, 2);
  rule.shape({"dy", view[GeluMulGrad::kDY]}, gate.shape);
  rule.shape({"up", view[GeluMulGrad::kUp]}, gate.shape);
  rule.shape({"dgate", view[GeluMulGrad::kDGate]}, gate.shape);
  rule.shape({"dup", view[GeluMulGrad::kDUp]}, gate.shape);
  rule.mixed_types({{"gate", gate},
                    {"dy", view[GeluMulGrad::kDY]},
                    {"up", view[GeluMulGrad::kUp]},
                    {"dgate", view[GeluMulGrad::kDGate]},
                    {"dup", view[GeluMulGrad::kDUp]}});
  return rule.error();
}

// gelu's factor (4) and two products.
Cost cost(const GeluMul&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[GeluMul::kY].shape.elements(), 6);
}

// gelu's factor (4) and its slope (3), dup (2), and dgate = dy * up * (factor + gate * slope) (4).
Cost cost(const GeluMulGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[GeluMulGrad::kDGate].shape.elements(), 13);
}

void differentiate(const GeluMul& gelu_mul, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, GeluMul::kY));
  const TensorId gate = id_of(operation, GeluMul::kGate);
  const TensorId up = id_of(operation, GeluMul::kUp);
  if (dy == kNone || (!tape.wants(gate) && !tape.wants(up))) return;
  // Copies: the table grows below.
  const Shape shape = tape.program().tensor(gate).shape;
  const DType gate_type = tape.program().tensor(gate).dtype;
  const DType up_type = tape.program().tensor(up).dtype;
  const TensorId dgate =
      tape.wants(gate) ? tape.contribute(gate) : tape.temporary("dgate", shape, gate_type);
  const TensorId dup = tape.wants(up) ? tape.contribute(up) : tape.temporary("dup", shape, up_type);
  tape.emit(GeluMulGrad{gelu_mul.tanh}, {dy, gate, up}, {dgate, dup});
}

InPlacePairs in_place_pairs(const GeluMul& gelu_mul) {
  return in_place(gelu_mul, {{GeluMul::kY, GeluMul::kGate}, {GeluMul::kY, GeluMul::kUp}});
}
InPlacePairs in_place_pairs(const GeluMulGrad& grad) {
  return in_place(
      grad, {{GeluMulGrad::kDGate, GeluMulGrad::kGate}, {GeluMulGrad::kDUp, GeluMulGrad::kUp}});
}

}  // namespace

SNUG_DEFINE_KIND(GeluMul, .differentiate = differentiate, .in_place_pairs = in_place_pairs);
SNUG_DEFINE_KIND(GeluMulGrad, .in_place_pairs = in_place_pairs);

}  // namespace snug::program
