#include "passes/memory/host_copies.h"

#include <iterator>
#include <utility>
#include <vector>

#include "base/error.h"
#include "program/ir/inputs.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/transfer/transfer.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

TensorId add_host_side(Program& program, const Tensor& device) {
  Tensor tensor = device;
  tensor.name = host_name(device.name);
  tensor.space = Space::pinned_host;
  program.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(program.tensors.size() - 1);
}

std::vector<bool> read_in(const Program& program) {
  std::vector<bool> is_read(program.tensors.size());
  for (const Operation& operation : program.operations)
    for (const TensorId id : operation.reads)
      is_read[static_cast<size_t>(program.owner(id))] = true;
  return is_read;
}

Operation copy(TensorId from, TensorId to, Phase phase) {
  Operation operation;
  operation.attributes = Copy{};
  operation.reads = {from};
  operation.writes = {to};
  operation.phase = phase;
  return operation;
}

}  // namespace

Program host_copies(Program program, std::span<const Tensor> results) {
  const Phase first = program.operations.empty() ? Phase::forward : program.operations[0].phase;
  const Phase last = program.operations.empty() ? Phase::forward : program.operations.back().phase;
  const std::vector<bool> is_read = read_in(program);
  Program result = std::move(program);
  std::vector<Operation> copies;
  for (size_t id = 0; id < is_read.size(); ++id)
    if (result.tensors[id].role == Role::batch && is_read[id])
      copies.push_back(
          copy(add_host_side(result, result.tensors[id]), static_cast<TensorId>(id), first));
  result.operations.insert(result.operations.begin(), std::make_move_iterator(copies.begin()),
                           std::make_move_iterator(copies.end()));
  for (const Tensor& tensor : results) {
    SNUG_CHECK(tensor.lifetime != Lifetime::program, "the host reads '{}', which is gone by then",
               tensor.name);
    TensorId id = result.find(tensor.name);
    if (id == kNone) {
      id = static_cast<TensorId>(result.tensors.size());
      result.tensors.push_back(tensor);
    }
    result.operations.push_back(copy(id, add_host_side(result, tensor), last));
  }
  return result;
}

}  // namespace snug::passes
