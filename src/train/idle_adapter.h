// Whether an adapter has moved: read once, some updates after the warm-up.
#pragma once

#include "runtime/execution/executor.h"
#include "runtime/process/job_ranks.h"

namespace snug::train {

// Whether the job has an adapter of products A and B, and every B is exactly 0. `ranks`: null: one
// alone; of several all must call it. Throws UserError for a value that is not finite.
bool is_idle_adapter(runtime::Executor& executor, const runtime::Ranks* ranks);

}  // namespace snug::train
