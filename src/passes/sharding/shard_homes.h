// The tensors of a program with sharding: the tensor that outlasts the program (its home), and the
// tensor that replaces it in an operation on the rank's part or on the whole.
#pragma once

#include <map>
#include <utility>

#include "passes/sharding/sharded_tensors.h"
#include "program/ir/program.h"

namespace snug::passes {

class ShardHomes {
 public:
  // Replaces the sharded tensors of `input` in `result`, which has the same tensors, by the rank's
  // part, or pads them. Both programs must outlive the object.
  ShardHomes(const program::Program& input, const ShardedTensors& sharded, int32_t shards,
             program::Program& result);

  bool is_sharded(program::TensorId home) const { return sharded_.contains(home); }
  bool is_padded(program::TensorId home) const;

  // Adds a tensor of lifetime program that can hold a sharded tensor whole.
  program::TensorId add_whole(program::TensorId home, program::Role role);
  // Sets which tensor holds the whole from here on; kNone: none does.
  void set_whole(program::TensorId home, program::TensorId whole) { wholes_[home] = whole; }
  program::TensorId whole(program::TensorId home) const;

  // The tensor that replaces an operand of the input. Fails a CHECK if the whole is asked for and
  // no tensor holds it.
  program::TensorId operand(program::TensorId id, bool on_parts);

 private:
  void make_home(program::TensorId id, const ShardedTensors& sharded);
  program::TensorId add(program::Tensor tensor);
  program::TensorId view_on(program::TensorId seen, program::TensorId base);
  program::TensorId own_part(program::TensorId home);

  const program::Program& input_;
  const int32_t shards_;
  program::Program& result_;
  std::map<program::TensorId, ShardedTensor> sharded_;  // by home
  std::map<program::TensorId, program::TensorId> wholes_;
  std::map<std::pair<program::TensorId, program::TensorId>, program::TensorId> views_;
  std::map<program::TensorId, program::TensorId> own_parts_;
};

}  // namespace snug::passes
