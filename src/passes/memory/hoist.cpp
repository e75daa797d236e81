#include "passes/memory/hoist.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "program/ir/builder.h"
#include "program/kinds/kind.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

bool is_of_weights(const Program& program, const Operation& operation) {
  return traits_of(operation).recomputing == Recomputing::kept &&
         std::ranges::all_of(operation.reads, [&](TensorId id) {
           return program.tensor(id).lifetime == Lifetime::run && !program.tensor(id).is_view();
         });
}

// A program that consists of these operations, with the tensors that they touch.
Program program_of(const Program& whole, const std::vector<Operation>& operations) {
  Builder builder(ProgramName::prepare);
  std::unordered_map<TensorId, TensorId> added;
  for (Operation operation : operations) {
    for (std::vector<TensorId>* ids : {&operation.reads, &operation.writes, &operation.updates})
      for (TensorId& id : *ids) {
        const auto [found, is_new] = added.emplace(id, kNone);
        if (is_new) found->second = builder.add(whole.tensor(id));
        id = found->second;
      }
    builder.emit(std::move(operation));
  }
  return builder.take();
}

}  // namespace

Hoisted hoist(Program program) {
  std::vector<Operation> once;
  std::vector<Operation> left;
  for (Operation& operation : std::exchange(program.operations, {})) {
    const bool moves = is_of_weights(program, operation);
    if (moves)
      for (const TensorId id : operation.writes) program.tensor(id).lifetime = Lifetime::run;
    (moves ? once : left).push_back(std::move(operation));
  }
  program.operations = std::move(left);
  Program made = program_of(program, once);
  return {std::move(program), std::move(made)};
}

}  // namespace snug::passes
