#include "program/ir/inputs.h"

#include "program/ir/operands.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"

namespace snug::program {

TensorId random_input(Program& program) {
  const TensorId known = program.find(kRandomName);
  if (known != kNone) return known;
  Tensor tensor;
  tensor.name = kRandomName;
  tensor.shape = {2};
  tensor.dtype = DType::i32;
  tensor.role = Role::batch;
  tensor.lifetime = Lifetime::step;
  program.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(program.tensors.size() - 1);
}

bool begins_with_input(const Program& program) {
  if (program.operations.empty() ||
      traits_of(program.operations.front()).copying != Copying::with_host)
    return false;
  const auto copies = copies_of(program.operations.front());
  return !copies.empty() && program.tensor(copies.front().first).space != Space::device;
}

TensorId host_side(const Program& program, TensorId tensor) {
  for (const Operation& operation : program.operations)
    if (traits_of(operation).copying == Copying::with_host)
      for (const auto& [source, destination] : copies_of(operation))
        if (destination == tensor) return source;
  return kNone;
}

}  // namespace snug::program
