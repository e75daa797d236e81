#include "program/kinds/silu_mul.h"

#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {

std::string shape_error(const SiluMul&, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(2, 1)) return rule.error();
  const Tensor& gate = view.read(0);
  rule.rank({"gate", gate}, 2);
  rule.shape({"up", view.read(1)}, gate.shape);
  rule.shape({"y", view.write(0)}, gate.shape);
  rule.mixed_types({{"gate", gate}, {"up", view.read(1)}, {"y", view.write(0)}});
  return rule.error();
}

std::string shape_error(const SiluMulGrad&, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(3, 2)) return rule.error();
  const Tensor& gate = view.read(1);
  rule.rank({"gate", gate}, 2);
  rule.shape({"dy", view.read(0)}, gate.shape);
  rule.shape({"up", view.read(2)}, gate.shape);
  rule.shape({"dgate", view.write(0)}, gate.shape);
  rule.shape({"dup", view.write(1)}, gate.shape);
  rule.mixed_types({{"gate", gate},
                    {"dy", view.read(0)},
                    {"up", view.read(2)},
                    {"dgate", view.write(0)},
                    {"dup", view.write(1)}});
  return rule.error();
}

// The sigmoid (3) and two products.
Cost cost(const SiluMul&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.write(0).shape.elements(), 5);
}

// The sigmoid (3), dup (2), and dgate = dy * up * s * (1 + gate * (1 - s)) (5).
Cost cost(const SiluMulGrad&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.write(0).shape.elements(), 10);
}

void differentiate(const SiluMul&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(operation.writes[0]);
  const TensorId gate = operation.reads[0];
  const TensorId up = operation.reads[1];
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

InPlacePairs in_place_pairs(const SiluMul&) { return {{0, 0}, {0, 1}}; }
InPlacePairs in_place_pairs(const SiluMulGrad&) { return {{0, 1}, {1, 2}}; }

}  // namespace snug::program
