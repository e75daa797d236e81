#include "passes/sharded_tensors.h"

namespace snug::passes {

ShardedTensors::ShardedTensors(const program::Program& program, const Sharding& sharding) {
  parts_.reserve(program.tensors.size());
  is_gradient_.reserve(program.tensors.size());
  for (const program::Tensor& tensor : program.tensors) {
    parts_.push_back(sharding.find(tensor.name));
    is_gradient_.push_back(sharding.is_gradient(tensor.name));
  }
}

}  // namespace snug::passes
