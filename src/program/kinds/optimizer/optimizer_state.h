// What an optimizer keeps of a tensor that trains, from one step to the next: what plans reserve,
// checkpoints save and ranks share of it.
#pragma once

#include <cstdint>

#include "program/ir/tensor.h"

namespace snug::program {

struct OptimizerState {
  // Lasts through the run. Role master: the f32 that is stepped in the place of the tensor that
  // trains; role moment: anything else. Zero bytes are the starting state of a moment.
  Tensor tensor;
  // Neighbouring elements of what trains that one element of it belongs to: 1, or kStateBlock for
  // the scale of a block. 0: it belongs to all of them, so that nobody can keep a part of it.
  int64_t shared_by = 1;
};

}  // namespace snug::program
