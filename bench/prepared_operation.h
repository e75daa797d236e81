// One operation on the CPU backend, ready to be run again and again: memory for its tensors, filled
// with random values, and its workspace.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.h"
#include "program/ir/builder.h"

namespace snug::bench {

// A tensor of its own, named by its number.
program::TensorId tensor(program::Builder& builder, const program::Shape& shape,
                         program::DType type);

class PreparedOperation {
 public:
  // Requires a program of one operation. Integers are zero until filled.
  PreparedOperation(program::Program program, int threads);

  void fill_integers(program::TensorId id, const std::vector<int32_t>& values);
  void fill_floats(program::TensorId id, float value);
  void run() { backend_->run(invocation_); }
  // Bytes of all operands, each counted once, updates twice.
  int64_t bytes_moved() const;
  int64_t workspace_bytes() const { return invocation_.workspace.shape.elements(); }

 private:
  struct Released {
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte[], Released>;
  static Memory reserve(int64_t bytes);
  backends::Buffer buffer(program::TensorId id);

  program::Program program_;
  std::unique_ptr<backends::Backend> backend_;
  std::vector<Memory> memory_;  // a tensor
  Memory workspace_;
  std::vector<backends::Buffer> reads_, writes_, updates_;
  std::unique_ptr<backends::Prepared> prepared_;
  backends::Invocation invocation_;
};

}  // namespace snug::bench
