// A program: one step of work as a table of tensors and a flat list of operations.
//
// Meaning. Operations run in list order, one after the other, except transfers: a transfer begins
// when all before it that computes is done, and goes on next to what follows until an await of it
// has run. What is placed on the channel `host` begins then too, and goes on next to what follows,
// except for what touches its operands, which waits for it; an await on that channel holds up that
// channel alone, and another one ends the copy. Joined operations may run together with the one
// before them. What the runtime performs on channel storage may overlap with the next such
// operation: one is read while the other is converted. An operation reads `reads`, overwrites
// `writes` (whatever they held is undefined before), reads and writes `updates` in place, and may
// scribble on its workspace; it touches nothing else and allocates nothing. Two tensors share bytes
// only if one is a view of the other, or if layout proved that the last reader of one comes before
// the first writer of the next.
//
// What a program does not write it expects: tensors of lifetime run (weights, moments), of lifetime
// step (batch tensors, before their copy; gradients that an earlier micro-batch began).
// Tensors of lifetime run are shared between programs of one job by name, those of lifetime step
// between programs of one stage (program_name.h).
//
// The memory reader, the clock and the executor all read this structure; nothing else describes a
// step.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "program/ir/operands.h"
#include "program/ir/operation.h"
#include "program/ir/tensor.h"

namespace snug::program {

class Target;  // the machine that a program is made for (target.h)

struct Program {
  std::string name;  // in a job: a word of ProgramName
  std::vector<Tensor> tensors;
  std::vector<Operation> operations;

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }
  // Whether both are the same bytes with the same shape and strides.
  bool are_same_place(TensorId a, TensorId b) const;
  // The tensor that owns the bytes of `id`: itself, or the base of a view.
  TensorId owner(TensorId id) const {
    const TensorId base = tensor(id).view.base;
    return base == kNone ? id : base;
  }
  // kNone if there is no such name. Linear: for loops, use index_by_name().
  TensorId find(std::string_view tensor_name) const;
  std::unordered_map<std::string_view, TensorId> index_by_name() const;
  bool operator==(const Program&) const = default;
};

// The operations [first, last] that run in one launch with this one: itself alone, or all that are
// joined with it.
struct Together {
  size_t first;
  size_t last;
};
Together done_with(const Program& program, size_t operation);

// An operation with its program: how kinds, targets and backends look at its tensors.
struct OperationView {
  const Program& program;
  const Operation& operation;

  // The tensor of an operand that is there.
  template <typename Struct>
  const Tensor& operator[](const Operand<Struct>& operand) const {
    return program.tensor(id_of(operation, operand));
  }
};

// Calls f(TensorId) for everything an operation touches: reads, writes, updates, workspace.
template <typename F>
void for_each_tensor(const Operation& operation, F&& f) {
  for (const TensorId id : operation.reads) f(id);
  for (const TensorId id : operation.writes) f(id);
  for (const TensorId id : operation.updates) f(id);
  if (operation.workspace != kNone) f(operation.workspace);
}

}  // namespace snug::program
