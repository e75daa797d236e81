// The tape: how a kind's derivative asks for the gradients it reads and the ones it should make.
// Implemented by passes/gradient/differentiate.cpp.
#pragma once

#include <functional>
#include <vector>

#include "program/ir/program.h"

namespace snug::program {

class Tape {
 public:
  virtual ~Tape() = default;
  // The forward program's table, grown by what the derivative adds.
  virtual const Program& program() const = 0;
  // Whether this tensor depends on anything trainable.
  virtual bool wants(TensorId tensor) const = 0;
  // Gradient of the loss in an output of the operation; kNone when none flows.
  virtual TensorId gradient(TensorId output) const = 0;
  // A fresh tensor, shaped like `input`, that the derivative must write: its contribution to
  // input's gradient. Contributions are summed after the derivative returns.
  virtual TensorId contribute(TensorId input) = 0;
  // Gives `input` a gradient that already exists and passes through unchanged.
  virtual void pass_through(TensorId input, TensorId gradient) = 0;
  virtual void emit(Attributes attributes, std::vector<TensorId> reads,
                    std::vector<TensorId> writes) = 0;
  // Whether another operation of the forward list reads a tensor.
  virtual bool is_read(TensorId tensor) const = 0;
  // States what an operation that is replaced by its training form in the forward pass still emits
  // in the backward pass, where gradients of its outputs are known. It is called at most once.
  virtual void later(std::function<void()> emit) = 0;
  // A fresh intermediate tensor of the backward pass.
  virtual TensorId temporary(const char* suffix, const Shape& shape, DType dtype) = 0;
};

}  // namespace snug::program
