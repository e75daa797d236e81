// Drops tensors that rewrites left without an operation: program tensors that nothing touches and
// that are not the base of a view in use. Load slots are kept, as are tensors of lifetime run and
// step.
#include "passes/lowering/lower.h"

#include <utility>
#include <vector>

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

void renumber(std::vector<TensorId>& ids, const std::vector<TensorId>& to) {
  for (TensorId& id : ids) id = to[static_cast<size_t>(id)];
}

}  // namespace

Program remove_unused(Program program) {
  std::vector<bool> used(program.tensors.size(), false);
  for (const Operation& operation : program.operations)
    for_each_tensor(operation, [&](TensorId id) {
      used[static_cast<size_t>(id)] = used[static_cast<size_t>(program.owner(id))] = true;
    });
  Program result;
  result.name = std::move(program.name);
  std::vector<TensorId> to(program.tensors.size(), kNone);
  for (size_t id = 0; id < program.tensors.size(); ++id) {
    Tensor& tensor = program.tensors[id];
    const bool kept =
        used[id] || tensor.lifetime != Lifetime::program || tensor.role == Role::staging;
    if (!kept) continue;
    to[id] = static_cast<TensorId>(result.tensors.size());
    result.tensors.push_back(std::move(tensor));
  }
  for (Tensor& tensor : result.tensors)
    if (tensor.is_view()) tensor.view.base = to[static_cast<size_t>(tensor.view.base)];
  result.operations = std::move(program.operations);
  for (Operation& operation : result.operations) {
    renumber(operation.reads, to);
    renumber(operation.writes, to);
    renumber(operation.updates, to);
    if (operation.workspace != kNone)
      operation.workspace = to[static_cast<size_t>(operation.workspace)];
  }
  return result;
}

}  // namespace snug::passes
