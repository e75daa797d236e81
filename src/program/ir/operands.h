// Access to an operation's operands by name. Code for any kind uses these functions; code for one
// kind uses that kind's constants (view[Rope::kTable], id_of(operation, Rope::kTable)).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/ir/operation.h"

namespace snug::program {

inline const std::vector<TensorId>& list_of(const Operation& operation, Access access) {
  switch (access) {
    case Access::read:
      return operation.reads;
    case Access::write:
      return operation.writes;
    case Access::update:
      break;
  }
  return operation.updates;
}
inline std::vector<TensorId>& list_of(Operation& operation, Access access) {
  return const_cast<std::vector<TensorId>&>(list_of(std::as_const(operation), access));
}

// The tensor of an operand of the operation, whose kind must be the operand's; kNone if the
// operation does not have it.
template <typename Struct>
TensorId id_of(const Operation& operation, const Operand<Struct>& operand) {
  const Slot slot = slot_of(operation.attributes.get<Struct>(), operand);
  return slot.present ? list_of(operation, slot.access)[slot.index] : kNone;
}

// An operand of an operation, with the kind's name for it. A repeated operand is listed once for
// each of its tensors.
struct NamedOperand {
  OperandName name;
  Access access = Access::read;
  TensorId tensor = kNone;
};

// Checks that the operation has the number of tensors that its kind requires for each access: empty
// if so, otherwise the problem. The other functions require that this check passes.
std::string operand_error(const Operation& operation);

// All operands that the operation has, in the order of its kind's list.
std::vector<NamedOperand> operands_of(const Operation& operation);

// The kind's names for the operation's tensors of one access, in order, given its attributes; the
// name of a repeated operand is listed once for each of its tensors.
std::vector<std::string_view> operand_names(const Operation& operation, Access access);

// For operands that several kinds have in common, such as the gradient and the weight of
// optimizers. kNone if the operation has no such operand.
TensorId find_operand(const Operation& operation, OperandName name);

// The tensor under which an operation is shown: the first that it writes, or else updates; kNone if
// there is none.
TensorId first_output(const Operation& operation);

// For an operation that copies, or begins or ends a copy: the pairs (source, destination). A tensor
// that a collective changes in place is its own destination.
std::vector<std::pair<TensorId, TensorId>> copies_of(const Operation& operation);

// Replaces the tensor of an operand, which the operation must have.
void replace_operand(Operation& operation, OperandName name, TensorId tensor);

// Adds an optional operand and sets the attribute that says that it is present. Returns false, with
// nothing changed, if the kind has no optional operand of this name or the operation has it
// already.
bool add_operand(Operation& operation, OperandName name, TensorId tensor);

// Removes an optional operand, which the operation must have, and clears the attribute that says
// that it is present.
void remove_operand(Operation& operation, OperandName name);

// Makes the operation add to `target` instead of overwriting its output `part`, and sets the
// attribute that says so. Returns false, with nothing changed, if the kind does not support that.
bool update_in_place(Operation& operation, TensorId part, TensorId target);

}  // namespace snug::program
