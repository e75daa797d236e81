// The sharding of the tensors of one program, by their ids, so that a pass looks each name up once
// and not with every operand.
#pragma once

#include <optional>
#include <vector>

#include "passes/sharding/sharding.h"
#include "program/ir/program.h"

namespace snug::passes {

class ShardedTensors {
 public:
  // It also finds what the parts of an optimizer pass on: a rank has its part of what one makes,
  // and of what one goes on with, all that was made of it.
  ShardedTensors(const program::Program& program, const Sharding& sharding);

  // Nothing: every rank holds it whole.
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
