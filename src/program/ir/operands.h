// Access to an operation's operands by name. Code for every kind goes through these functions; code
// for one kind uses its constants (view[Rope::kTable], id_of(operation, Rope::kTable)).
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

// The tensor of an operand, of an operation of that kind; kNone where the operation has none.
template <typename Struct>
TensorId id_of(const Operation& operation, const Operand<Struct>& operand) {
  const Slot slot = slot_of(operation.attributes.get<Struct>(), operand);
  return slot.present ? list_of(operation, slot.access)[slot.index] : kNone;
}

// An operation's operand with the name that its kind gives it. A repeated operand is there once for
// each of its tensors.
struct NamedOperand {
  OperandName name;
  Access access = Access::read;
  TensorId tensor = kNone;
};

// Whether the operation has as many tensors of each access as its kind says: empty if so, else what
// is wrong. Only then may operands be asked for.
std::string operand_error(const Operation& operation);

// All that are there, in the order of the kind's list.
std::vector<NamedOperand> operands_of(const Operation& operation);

// The kind's names for the tensors of one access that an operation with these attributes has, in
// their order; a repeated operand's name is there once for each of its tensors.
std::vector<std::string_view> operand_names(const Operation& operation, Access access);

// For what kinds of one sort have in common, such as the gradient and the weight of an optimizer.
// kNone where the operation has no such operand.
TensorId find_operand(const Operation& operation, OperandName name);

// What an operation is shown with: the first tensor that it writes, or else updates; kNone where it
// does neither.
TensorId first_output(const Operation& operation);

// For an operation that copies, or begins or ends a copy: a pair (source, destination) for each of
// its tensors. A tensor that ranks change in place is its own destination.
std::vector<std::pair<TensorId, TensorId>> copies_of(const Operation& operation);

// Puts another tensor in the place of an operand, which the operation must have.
void replace_operand(Operation& operation, OperandName name, TensorId tensor);

// Adds an optional operand and sets the attribute that says so. False, and nothing is changed,
// where the kind has no optional operand of this name or the operation has it already.
bool add_operand(Operation& operation, OperandName name, TensorId tensor);

// Takes an optional operand away, which the operation must have, and clears the attribute that says
// that it is there.
void remove_operand(Operation& operation, OperandName name);

// Lets the operation add to `target` instead of overwriting its output `part`, and sets the
// attribute that says so. False, and nothing is changed, where the kind cannot.
bool update_in_place(Operation& operation, TensorId part, TensorId target);

}  // namespace snug::program
