// A training job in two steps, for what chooses among many jobs: its programs, which are all that
// the clock needs, and its layout. plan_training (job.h) is the two together. Pure functions.
#pragma once

#include "plan/job/job.h"
#include "program/ir/program.h"

namespace snug::plan {

// A job whose layout has sizes alone: no offsets, and arenas that are the least that any layout
// could need.
Job training_programs(const TrainingSpec& spec, const program::Target& target);

bool is_laid_out(const Job& job);
// Gives such a job its layout; one that has it stays as it is.
void lay_out(Job& job, const program::Target& target);

}  // namespace snug::plan
