// Where a program needs sharded tensors whole: the visits, which are ranges of sections. A section
// is the operations of one layer in one direction, forward or backward; each operation outside of
// layers is a section by itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "passes/sharding/sharded_tensors.h"
#include "program/ir/program.h"

namespace snug::passes {

// Sections [first, last] need the tensor whole.
struct WholeVisit {
  program::TensorId home = program::kNone;
  int32_t first = -1;
  int32_t last = -1;
};

struct ShardVisits {
  std::vector<int32_t> section_of;    // by operation
  std::vector<WholeVisit> weights;    // in order of their first sections
  std::vector<WholeVisit> gradients;  // of all trainable tensors, sharded or not
};

// Whether an operation works on the rank's parts of tensors, as optimizers do: everything that it
// touches is sharded or is a single number.
bool works_on_parts(const program::Program& program, const program::Operation& operation,
                    const ShardedTensors& sharded);

// Whether the program writes any tensor of these names.
bool writes_any(const program::Program& program, std::span<const program::Tensor> named);

ShardVisits find_visits(const program::Program& program, const ShardedTensors& sharded,
                        WeightSharding weights);

}  // namespace snug::passes
