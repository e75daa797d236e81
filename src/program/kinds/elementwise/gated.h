// What the kinds y = f(gate) * up share, whatever the activation f: the operands gate, up and y,
// and of the gradient dy, gate, up, dgate and dup, all (tokens, width) and of any mix of types.
// Internal to the files of such kinds.
#pragma once

#include <string>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"

namespace snug::program {

template <typename Gated>
std::string gated_shape_error(const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& gate = view[Gated::kGate];
  rule.rank(Gated::kGate, 2);
  rule.shape(Gated::kUp, gate.shape);
  rule.shape(Gated::kY, gate.shape);
  rule.mixed_types({Gated::kGate, Gated::kUp, Gated::kY});
  return rule.error();
}

template <typename Grad>
std::string gated_grad_shape_error(const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& gate = view[Grad::kGate];
  rule.rank(Grad::kGate, 2);
  rule.shape(Grad::kDY, gate.shape);
  rule.shape(Grad::kUp, gate.shape);
  rule.shape(Grad::kDGate, gate.shape);
  rule.shape(Grad::kDUp, gate.shape);
  rule.mixed_types({Grad::kGate, Grad::kDY, Grad::kUp, Grad::kDGate, Grad::kDUp});
  return rule.error();
}

// Emits `grad` where the tape wants the gradient of gate or up.
template <typename Gated, typename Grad>
void differentiate_gated(const Grad& grad, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Gated::kY));
  const TensorId gate = id_of(operation, Gated::kGate);
  const TensorId up = id_of(operation, Gated::kUp);
  if (dy == kNone || (!tape.wants(gate) && !tape.wants(up))) return;
  // Copies: the table grows below.
  const Shape shape = tape.program().tensor(gate).shape;
  const DType gate_type = tape.program().tensor(gate).dtype;
  const DType up_type = tape.program().tensor(up).dtype;
  const TensorId dgate =
      tape.wants(gate) ? tape.contribute(gate) : tape.temporary("dgate", shape, gate_type);
  const TensorId dup = tape.wants(up) ? tape.contribute(up) : tape.temporary("dup", shape, up_type);
  tape.emit(grad, {dy, gate, up}, {dgate, dup});
}

}  // namespace snug::program
