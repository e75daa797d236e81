// The operations that passes for several ranks insert: collectives, with the target's decisions
// about them and their scratch memory, and the awaits that complete them.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace snug::passes {

class RankOperations {
 public:
  // Adds tensors to `program`, which must outlive the object.
  RankOperations(program::Program& program, const program::Target& target)
      : program_(program), target_(target) {}

  // Begins a collective, with the phase and layer of `place`. Returns its await, to be inserted
  // where the result is needed.
  program::Operation begin(program::Operation collective, const program::Operation& place);
  // Adds the scratch memory that the target needs for the operation with its current operands.
  void give_scratch(program::Operation& operation);
  // Counts the launches of all operations with their current operands.
  void count_launches();

 private:
  program::Program& program_;
  const program::Target& target_;
};

}  // namespace snug::passes
