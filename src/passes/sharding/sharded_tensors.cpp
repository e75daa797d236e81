#include "passes/sharding/sharded_tensors.h"

#include "program/kinds/kind.h"

namespace snug::passes {

ShardedTensors::ShardedTensors(const program::Program& program, const Sharding& sharding) {
  parts_.reserve(program.tensors.size());
  is_gradient_.reserve(program.tensors.size());
  for (const program::Tensor& tensor : program.tensors) {
    parts_.push_back(sharding.find(tensor.name));
    is_gradient_.push_back(sharding.is_gradient(tensor.name));
  }
  for (const program::Operation& operation : program.operations)
    if (program::traits_of(operation).category == program::Category::optimizer_part)
      share_out(program, operation);
}

void ShardedTensors::share_out(const program::Program& program,
                               const program::Operation& operation) {
  const auto share = [&](const std::vector<program::TensorId>& ids, program::TensorId updated,
                         bool is_padded) {
    for (const program::TensorId id : ids) {
      const program::TensorId owner = program.owner(id);
      auto& passed_on = parts_[static_cast<size_t>(owner)];
      if (!passed_on && program.tensor(owner).shape == program.tensor(updated).shape)
        passed_on = ShardedTensor{.elements = find(program.owner(updated))->elements,
                                  .is_padded = is_padded};
    }
  };
  for (const program::TensorId updated : operation.updates) {
    if (!find(program.owner(updated))) continue;
    share(operation.reads, updated, true);
    share(operation.writes, updated, false);
  }
}

}  // namespace snug::passes
