// Determines what a process will hold in memory besides its arenas, by making everything else that
// a job needs.
#pragma once

#include "plan/job/assembly.h"
#include "program/ir/program.h"

namespace snug::runtime {

// The bytes resident outside the arenas when the job's first step begins, and the peak of the
// process until now. Call it once data and plan are made and before anything is allocated. On a
// backend that runs on this machine's CPU, the job is prepared once on arenas without memory, so
// that the code that libraries generate, the executor's data for each operation and the program's
// own code are resident and can be counted. On a GPU the answer is outside_bytes(). Takes as long
// as preparing the job.
plan::ProcessBytes rehearse(const plan::Job& job, program::Target& target);

}  // namespace snug::runtime
