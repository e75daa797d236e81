// What a process will hold next to its arenas, found by making everything else that a job makes.
#pragma once

#include "plan/job/assembly.h"
#include "program/ir/program.h"

namespace snug::runtime {

// What is resident outside the arenas when the job's first step begins, and what the process held
// at most until now: asked once data and plan are made and before anything is allocated. On a
// backend of this machine's processor the job is made ready once on arenas without memory, so
// machine code that libraries make for its products and what the executor keeps of each operation
// are there to be counted, and the program's own code is read in. Elsewhere (a card) they are
// outside_bytes(). Takes as long as making the job ready.
plan::ProcessBytes rehearse(const plan::Job& job, program::Target& target);

}  // namespace snug::runtime
