// Appends tensors and operations to a program. The caller is responsible for unique names.
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

  // Sets the layer and the phase of everything that is emitted from here on.
  void set_layer(int32_t layer) { layer_ = layer; }
  void set_phase(Phase phase) { phase_ = phase; }
  int32_t layer() const { return layer_; }

  TensorId add(Tensor tensor);
  // Adds an activation of the current layer, of lifetime program.
  TensorId activation(std::string name, const Shape& shape, DType dtype);
  void emit(Attributes attributes, std::vector<TensorId> reads, std::vector<TensorId> writes,
            std::vector<TensorId> updates = {});
  // Appends an operation unchanged, with its own layer, phase, channel and workspace.
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
