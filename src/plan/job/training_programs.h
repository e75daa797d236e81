// Plans a training job in two steps, for choosing among many jobs: its programs, which are all that
// the clock needs, and then its layout. plan_training (job.h) does both. Pure functions.
#pragma once

#include "plan/job/job.h"
#include "program/ir/program.h"

namespace snug::plan {

// A job whose layout has only sizes: no offsets, and the smallest arenas that any layout could
// have.
Job training_programs(const TrainingSpec& spec, const program::Target& target);

bool is_laid_out(const Job& job);
// Gives such a job a real layout; a job that has one is unchanged.
void lay_out(Job& job, const program::Target& target);

}  // namespace snug::plan
