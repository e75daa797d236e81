// The tensors of a program in which some are sharded: the tensor that lasts (its home), and the one
// that stands for it in an operation that works on the rank's part or on the whole.
#pragma once

#include <map>
#include <utility>

#include "passes/sharding/sharded_tensors.h"
#include "program/ir/program.h"

namespace snug::passes {

class ShardHomes {
 public:
  // Makes what is sharded of `input` the rank's part in `result`, which has the same tensors, or
  // pads it. Both must outlive the object.
  ShardHomes(const program::Program& input, const ShardedTensors& sharded, int32_t shards,
             program::Program& result);

  bool is_sharded(program::TensorId home) const { return sharded_.contains(home); }
  bool is_padded(program::TensorId home) const;

  // Memory within the program for all of a tensor that is sharded.
  program::TensorId add_whole(program::TensorId home, program::Role role);
  // Says where all of it is from here on; kNone: nowhere.
  void set_whole(program::TensorId home, program::TensorId whole) { wholes_[home] = whole; }
  program::TensorId whole(program::TensorId home) const;

  // What stands for an operand of the input. Fails a CHECK where all is asked for and is nowhere.
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
