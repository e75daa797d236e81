// The sharding of one program's tensors by id, so that a pass looks each name up once rather than
// with every operand.
#pragma once

#include <optional>
#include <vector>

#include "passes/sharding/sharding.h"
#include "program/ir/program.h"

namespace snug::passes {

class ShardedTensors {
 public:
  // Also finds the sharding of tensors that the operations of a multi-part optimizer pass to each
  // other: each rank writes its part of such a tensor, and reads the whole.
  ShardedTensors(const program::Program& program, const Sharding& sharding);

  // Nothing: every rank holds the tensor whole.
  const std::optional<ShardedTensor>& find(program::TensorId id) const {
    return parts_[static_cast<size_t>(id)];
  }
  bool is_gradient(program::TensorId id) const { return is_gradient_[static_cast<size_t>(id)]; }

 private:
  void share_out(const program::Program& program, const program::Operation& operation);

  std::vector<std::optional<ShardedTensor>> parts_;
  std::vector<bool> is_gradient_;
};

}  // namespace snug::passes
