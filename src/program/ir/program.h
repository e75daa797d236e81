// A program: one step of work as a table of tensors and a flat list of operations.
//
// Semantics. Operations run in list order, one after the other, with these exceptions. A transfer
// begins when all earlier compute operations have finished, and runs concurrently with later
// operations until it has been awaited. An operation on channel `host` begins at the same point and
// runs concurrently with later operations, except those that touch its operands, which wait for it.
// An await on channel `host` blocks only that channel; a second await on the compute channel ends
// the copy. Joined operations may run together with the one before them. Operations on channel
// storage, which the runtime performs, may overlap with the next one: one is read while the other
// is converted. An operation reads `reads`, overwrites `writes` (without using their previous
// values), reads and writes `updates` in place, and may write anything to its workspace; it touches
// nothing else and allocates nothing. Two tensors share bytes only if one is a view of the other,
// or if layout proved that the last reader of one comes before the first writer of the next.
//
// Tensors that a program reads without writing them first must have values before it runs: tensors
// of lifetime run (weights, moments) and of lifetime step (batch tensors before their copy;
// gradients that an earlier micro-batch began). Tensors of lifetime run are shared by name between
// all programs of a job, and those of lifetime step between the programs of a stage
// (program_name.h).
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
  std::string name;  // in a job: the name of a ProgramKey
  std::vector<Tensor> tensors;
  std::vector<Operation> operations;

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }
  // Whether both tensors occupy the same bytes with the same shape and strides.
  bool are_same_place(TensorId a, TensorId b) const;
  // The tensor that owns the bytes of `id`: itself, or its base if it is a view.
  TensorId owner(TensorId id) const {
    const TensorId base = tensor(id).view.base;
    return base == kNone ? id : base;
  }
  // kNone if there is no such name. Takes linear time; index_by_name() is faster for many names.
  TensorId find(std::string_view tensor_name) const;
  std::unordered_map<std::string_view, TensorId> index_by_name() const;
  bool operator==(const Program&) const = default;
};

// The operations [first, last] that run in one launch together with this one: only itself if
// nothing is joined.
struct Together {
  size_t first;
  size_t last;
};
Together done_with(const Program& program, size_t operation);

// An operation with its program, for access to its tensors by kinds, targets and backends.
struct OperationView {
  const Program& program;
  const Operation& operation;

  // The tensor of an operand that the operation must have.
  template <typename Struct>
  const Tensor& operator[](const Operand<Struct>& operand) const {
    return program.tensor(id_of(operation, operand));
  }
};

// Calls f(TensorId) for every tensor that an operation touches: reads, writes, updates, workspace.
template <typename F>
void for_each_tensor(const Operation& operation, F&& f) {
  for (const TensorId id : operation.reads) f(id);
  for (const TensorId id : operation.writes) f(id);
  for (const TensorId id : operation.updates) f(id);
  if (operation.workspace != kNone) f(operation.workspace);
}

}  // namespace snug::program
