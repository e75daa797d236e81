#include "program/inputs.h"

namespace snug::program {

TensorId random_input(Program& program) {
  const TensorId known = program.find("random");
  if (known != kNone) return known;
  Tensor tensor;
  tensor.name = "random";
  tensor.shape = {2};
  tensor.dtype = DType::i32;
  tensor.role = Role::scalar;
  tensor.lifetime = Lifetime::step;
  program.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(program.tensors.size() - 1);
}

}  // namespace snug::program
