#include "passes/memory/mark_constants.h"

#include <utility>
#include <vector>

#include "program/ir/inputs.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

}  // namespace

Program mark_constants(Program program) {
  Program result = std::move(program);
  if (!begins_with_input(result)) return result;
  std::vector<bool> is_changed(result.tensors.size());  // by owner of bytes
  for (const Operation& operation : result.operations)
    for (const auto* ids : {&operation.writes, &operation.updates})
      for (const TensorId id : *ids) is_changed[index(result.owner(id))] = true;
  for (size_t id = 0; id < result.tensors.size(); ++id) {
    Tensor& tensor = result.tensors[id];
    tensor.constant = tensor.lifetime == Lifetime::run &&
                      !is_changed[index(result.owner(static_cast<TensorId>(id)))];
  }
  return result;
}

}  // namespace snug::passes
