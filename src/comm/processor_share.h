// How many threads each rank has where nobody says: the processors that ranks may use are shared
// out among those that may use the same ones. A launcher that binds each rank to processors of its
// own leaves it all of those; ranks that it does not bind share the machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::comm {

// What one rank may use.
struct ProcessorUse {
  std::string machine;          // the same for ranks whose processors are the same
  std::vector<int> processors;  // that it may run on
  std::string quota_group;      // of ranks that share a quota; empty: there is none
  double quota = 0;             // processors' time for the whole group
};

// The processors that this process uses.
ProcessorUse own_processor_use();

std::string to_text(const ProcessorUse& use);
ProcessorUse processor_use_of(const std::string& text);

// Threads of each rank: the least share of any, at least one, since the plan of one rank is that of
// all.
int threads_of_ranks(const std::vector<ProcessorUse>& ranks);

}  // namespace snug::comm
