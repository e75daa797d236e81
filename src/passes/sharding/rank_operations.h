// The operations that passes for several ranks insert into a program: collectives with what the
// target decides of them and their scratch, and the awaits that end them.
#pragma once

#include <string>
#include <vector>

#include "program/ir/program.h"

namespace snug::passes {

class RankOperations {
 public:
  // Adds to `program`, which must outlive the object.
  RankOperations(program::Program& program, const program::Target& target)
      : program_(program), target_(target) {}

  // Begins a collective; returns its await, to be inserted where the result is needed. The
  // collective has the phase and layer of `place`.
  program::Operation begin(program::Operation collective, const program::Operation& place);
  // The scratch that the target asks for with the operands that the operation has now.
  void give_scratch(program::Operation& operation);
  // Counts the launches of all operations, with the operands that they have now.
  void count_launches();

 private:
  program::Program& program_;
  const program::Target& target_;
};

}  // namespace snug::passes
