#include "program/kinds/silu_mul.h"

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

std::string shape_error(const SiluMul&, const OperationView& view) {
  ShapeRule rule;
  const Tensor& gate = view[SiluMul::kGate];
  rule.rank({"gate", gate}, 2);
  rule.shape({"up", view[SiluMul::kUp]}, gate.shape);
  rule.shape({"y", view[SiluMul::kY]}, gate.shape);
  rule.mixed_types({{"gate", gate}, {"up", view[SiluMul::kUp]}, {"y", view[SiluMul::kY]}});
  return rule.error();
}

std::string shape_error(const SiluMulGrad&, const OperationView& view) {
  ShapeRule rule;
  const Tensor& gate = view[SiluMulGrad::kGate];
  rule.rank({"gate", gate}, 2);
  rule.shape({"dy", view[SiluMulGrad::kDY]}, gate.shape);
  rule.shape({"up", view[SiluMulGrad::kUp]}, gate.shape);
  rule.shape({"dgate", view[SiluMulGrad::kDGate]}, gate.shape);
  rule.shape({"dup", view[SiluMulGrad::kDUp]}, gate.shape);
  rule.mixed_types({{"gate", gate},
                    {"dy", view[SiluMulGrad::kDY]},
                    {"up", view[SiluMulGrad::kUp]},
                    {"dgate", view[SiluMulGrad::kDGate]},
                    {"dup", view[SiluMulGrad::kDUp]}});
  return rule.error();
}

// The sigmoid (3) and two products.
Cost cost(const SiluMul&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SiluMul::kY].shape.elements(), 5);
}

// The sigmoid (3), dup (2), and dgate = dy * up * s * (1 + gate * (1 - s)) (5).
Cost cost(const SiluMulGrad&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[SiluMulGrad::kDGate].shape.elements(), 10);
}

void differentiate(const SiluMul&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, SiluMul::kY));
  const TensorId gate = id_of(operation, SiluMul::kGate);
  const TensorId up = id_of(operation, SiluMul::kUp);
  if (dy == kNone || (!tape.wants(gate) && !tape.wants(up))) return;
  // Copies: the table grows below.
  const Shape shape = tape.program().tensor(gate).shape;
  const DType gate_type = tape.program().tensor(gate).dtype;
  const DType up_type = tape.program().tensor(up).dtype;
  const TensorId dgate =
      tape.wants(gate) ? tape.contribute(gate) : tape.temporary("dgate", shape, gate_type);
  const TensorId dup = tape.wants(up) ? tape.contribute(up) : tape.temporary("dup", shape, up_type);
  tape.emit(SiluMulGrad{}, {dy, gate, up}, {dgate, dup});
}

InPlacePairs in_place_pairs(const SiluMul& silu_mul) {
  return in_place(silu_mul, {{SiluMul::kY, SiluMul::kGate}, {SiluMul::kY, SiluMul::kUp}});
}
InPlacePairs in_place_pairs(const SiluMulGrad& grad) {
  return in_place(
      grad, {{SiluMulGrad::kDGate, SiluMulGrad::kGate}, {SiluMulGrad::kDUp, SiluMulGrad::kUp}});
}

}  // namespace

SNUG_DEFINE_KIND(SiluMul, .differentiate = differentiate, .in_place_pairs = in_place_pairs);
SNUG_DEFINE_KIND(SiluMulGrad, .in_place_pairs = in_place_pairs);

}  // namespace snug::program
