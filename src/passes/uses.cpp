#include "passes/uses.h"

#include <utility>

namespace snug::passes {

Uses find_uses(const program::Program& program) {
  Uses uses;
  uses.readers.resize(program.tensors.size());
  uses.writers.resize(program.tensors.size());
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const auto& operation = program.operations[i];
    const auto position = static_cast<int32_t>(i);
    const auto readers = [&](program::TensorId id) -> auto& {
      return uses.readers[static_cast<size_t>(program.owner(id))];
    };
    const auto writers = [&](program::TensorId id) -> auto& {
      return uses.writers[static_cast<size_t>(program.owner(id))];
    };
    for (const auto id : operation.reads) readers(id).push_back(position);
    for (const auto id : operation.writes) writers(id).push_back(position);
    for (const auto id : operation.updates) {
      readers(id).push_back(position);
      writers(id).push_back(position);
    }
  }
  return uses;
}

std::vector<int32_t> last_touch_of_owner(const program::Program& program) {
  std::vector<int32_t> last(program.tensors.size(), -1);
  for (size_t i = 0; i < program.operations.size(); ++i)
    program::for_each_tensor(program.operations[i], [&](program::TensorId id) {
      last[static_cast<size_t>(program.owner(id))] = static_cast<int32_t>(i);
    });
  return last;
}

program::Program without(program::Program program, const std::vector<bool>& removed) {
  std::vector<program::Operation> left;
  left.reserve(program.operations.size());
  for (size_t i = 0; i < program.operations.size(); ++i)
    if (!removed[i]) left.push_back(std::move(program.operations[i]));
  program.operations = std::move(left);
  return program;
}

}  // namespace snug::passes
