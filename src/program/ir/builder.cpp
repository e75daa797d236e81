#include "program/ir/builder.h"

#include <utility>

namespace snug::program {

TensorId Builder::add(Tensor tensor) {
  program_.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

TensorId Builder::activation(std::string name, const Shape& shape, DType dtype) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = shape;
  tensor.dtype = dtype;
  tensor.layer = layer_;
  return add(std::move(tensor));
}

void Builder::emit(Attributes attributes, std::vector<TensorId> reads, std::vector<TensorId> writes,
                   std::vector<TensorId> updates) {
  Operation operation;
  operation.attributes = attributes;
  operation.reads = std::move(reads);
  operation.writes = std::move(writes);
  operation.updates = std::move(updates);
  operation.phase = phase_;
  operation.layer = layer_;
  program_.operations.push_back(std::move(operation));
}

}  // namespace snug::program
