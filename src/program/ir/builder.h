// Appends tensors and operations to a program. Names are made unique by the caller.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/ir/program.h"
#include "program/ir/program_name.h"

namespace snug::program {

class Builder {
 public:
  explicit Builder(std::string name) { program_.name = std::move(name); }
  explicit Builder(const ProgramKey& key) : Builder(name_of(key)) {}
  explicit Builder(ProgramName name) : Builder(ProgramKey(name)) {}
  explicit Builder(Program program) : program_(std::move(program)) {}

  // Everything emitted from here on belongs to this layer and phase.
  void set_layer(int32_t layer) { layer_ = layer; }
  void set_phase(Phase phase) { phase_ = phase; }
  int32_t layer() const { return layer_; }

  TensorId add(Tensor tensor);
  // An activation of the current layer that lives inside the program.
  TensorId activation(std::string name, const Shape& shape, DType dtype);
  void emit(Attributes attributes, std::vector<TensorId> reads, std::vector<TensorId> writes,
            std::vector<TensorId> updates = {});
  // Appends an operation as it is, with its own layer, phase, stream and workspace.
  void emit(Operation operation) { program_.operations.push_back(std::move(operation)); }

  Tensor& tensor(TensorId id) { return program_.tensor(id); }
  const Program& program() const { return program_; }
  Program take() { return std::move(program_); }

 private:
  Program program_;
  int32_t layer_ = -1;
  Phase phase_ = Phase::forward;
};

}  // namespace snug::program
