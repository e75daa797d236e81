// Two peephole rewrites: a matrix product or a norm's derivative absorbs a following addition.
#include <algorithm>
#include <optional>
#include <utility>

#include "passes/lowering/lower.h"
#include "passes/uses.h"
#include "program/ir/operands.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/product/nf4.h"
#include "program/work/target.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// Whether this target can run the operation with an addend for its first output.
bool takes_addend(const Program& program, const Operation& operation, TensorId addend,
                  const Target& target) {
  const auto* matmul = operation.attributes.get_if<Matmul>();
  if (matmul != nullptr && matmul->accumulate) return false;
  Operation trial = operation;
  return add_operand(trial, kAddendOperand, addend) && target.runs({program, trial});
}

// The name of the output to which an addend is added, for kinds that can take one; otherwise empty.
OperandName sum_operand(const Operation& operation) {
  for (const OperandName name : {Matmul::kC.name, MatmulNf4::kY.name, RmsNormGrad::kDX.name})
    if (find_operand(operation, name) != kNone) return name;
  return {};
}

void set_addend(Operation& operation, TensorId addend, TensorId output) {
  replace_operand(operation, sum_operand(operation), output);
  add_operand(operation, kAddendOperand, addend);
}

// The producer of `part`, if it can absorb add(part, other) at position `add`: nothing else reads
// part, and `other` is computed before the producer runs.
std::optional<int32_t> absorber(const Program& program, const Uses& uses, TensorId part,
                                TensorId other, const std::vector<bool>& removed,
                                const Target& target) {
  if (program.tensor(part).is_view()) return {};
  if (uses.readers[index(part)].size() != 1 || uses.writers[index(part)].size() != 1) return {};
  const int32_t producer = uses.writers[index(part)][0];
  if (removed[static_cast<size_t>(producer)]) return {};
  const Operation& operation = program.operations[static_cast<size_t>(producer)];
  if (find_operand(operation, sum_operand(operation)) != part) return {};
  for (const int32_t writer : uses.writers[index(program.owner(other))])
    if (writer >= producer) return {};
  if (!takes_addend(program, operation, other, target)) return {};
  return producer;
}

// Makes the operation add its output `part` to the sum's tensor directly; returns false when its
// kind cannot.
bool accumulate_into(Operation& operation, const Operation& sum, const Accumulate& attributes) {
  auto* matmul = operation.attributes.get_if<Matmul>();
  if (matmul == nullptr ? attributes.stochastic : matmul->addend || matmul->augmented) return false;
  const TensorId part = id_of(sum, Accumulate::kX);
  if (!update_in_place(operation, part, id_of(sum, Accumulate::kY))) return false;
  if (!attributes.stochastic) return true;
  matmul->seed = attributes.seed;
  matmul->site = attributes.site;
  return add_operand(operation, Matmul::kRandom.name, id_of(sum, Accumulate::kRandom));
}

// Whether an operation in between gives the sum its first value: what is added before would be
// lost.
bool begins_between(const Program& program, const Uses& uses, TensorId sum, int32_t first,
                    int32_t last) {
  const TensorId owner = program.owner(sum);
  return std::ranges::any_of(uses.writers[index(owner)], [&](int32_t writer) {
    const Operation& operation = program.operations[static_cast<size_t>(writer)];
    return writer > first && writer < last &&
           std::ranges::any_of(operation.writes, [&](TensorId id) {
             return id != kNone && program.owner(id) == owner;
           });
  });
}

}  // namespace

Program fuse_adds(Program program, const Target& target) {
  Program result = std::move(program);
  std::vector<bool> removed(result.operations.size(), false);
  const Uses uses = find_uses(result);
  for (size_t i = 0; i < result.operations.size(); ++i) {
    if (result.operations[i].kind() != Kind::add) continue;
    const Operation add = result.operations[i];
    const TensorId a = id_of(add, Add::kA);
    const TensorId b = id_of(add, Add::kB);
    for (const auto& [part, other] : {std::pair{a, b}, std::pair{b, a}}) {
      const auto producer = absorber(result, uses, part, other, removed, target);
      if (!producer) continue;
      set_addend(result.operations[static_cast<size_t>(*producer)], other, id_of(add, Add::kC));
      removed[i] = true;
      break;
    }
  }
  return without(std::move(result), removed);
}

Program fuse_accumulates(Program program) {
  Program result = std::move(program);
  const Uses uses = find_uses(result);
  std::vector<bool> removed(result.operations.size(), false);
  for (size_t i = 0; i < result.operations.size(); ++i) {
    if (result.operations[i].kind() != Kind::accumulate) continue;
    const Operation sum = result.operations[i];
    const auto* attributes = sum.attributes.get_if<Accumulate>();
    const TensorId part = id_of(sum, Accumulate::kX);
    if (result.tensor(part).is_view()) continue;
    if (uses.readers[index(part)].size() != 1 || uses.writers[index(part)].size() != 1) continue;
    const int32_t made = uses.writers[index(part)][0];
    if (begins_between(result, uses, id_of(sum, Accumulate::kY), made, static_cast<int32_t>(i)))
      continue;
    Operation& producer = result.operations[static_cast<size_t>(made)];
    if (!accumulate_into(producer, sum, *attributes)) continue;
    removed[i] = true;
  }
  return without(std::move(result), removed);
}

}  // namespace snug::passes
