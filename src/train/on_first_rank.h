// Work that one rank does alone after a run, while the others wait for it.
#pragma once

#include <functional>

#include "runtime/process/job_ranks.h"

namespace snug::train {

// What `work` returns, on all ranks. The first alone calls it, on a thread of its own where there
// are others: these hear from it every second, so that no time limit of a collective ends them.
// All must call this. What `work` throws is thrown on the first.
int on_first_rank(const std::function<int()>& work, const runtime::Ranks& ranks);

}  // namespace snug::train
