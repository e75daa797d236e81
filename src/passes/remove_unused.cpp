// Drops tensors that rewrites left without an operation: program tensors that nothing touches and
// that are no base of a view in use. Load slots stay, as do tensors of lifetime run and step.
#include "passes/lower.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

void renumber(std::vector<TensorId>& ids, const std::vector<TensorId>& to) {
  for (TensorId& id : ids) id = to[static_cast<size_t>(id)];
}

}  // namespace

Program remove_unused(const Program& program) {
  std::vector<bool> used(program.tensors.size(), false);
  for (const Operation& operation : program.operations)
    for_each_tensor(operation, [&](TensorId id) {
      used[static_cast<size_t>(id)] = used[static_cast<size_t>(program.owner(id))] = true;
    });
  Program result;
  result.name = program.name;
  std::vector<TensorId> to(program.tensors.size(), kNone);
  for (size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    const bool kept =
        used[id] || tensor.lifetime != Lifetime::program || tensor.role == Role::staging;
    if (!kept) continue;
    to[id] = static_cast<TensorId>(result.tensors.size());
    result.tensors.push_back(tensor);
  }
  for (Tensor& tensor : result.tensors)
    if (tensor.is_view()) tensor.view.base = to[static_cast<size_t>(tensor.view.base)];
  for (Operation operation : program.operations) {
    renumber(operation.reads, to);
    renumber(operation.writes, to);
    renumber(operation.updates, to);
    if (operation.workspace != kNone)
      operation.workspace = to[static_cast<size_t>(operation.workspace)];
    result.operations.push_back(std::move(operation));
  }
  return result;
}

}  // namespace snug::passes
