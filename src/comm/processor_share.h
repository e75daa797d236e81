// The default number of threads of each rank: processors are divided evenly among the ranks that
// may run on them. A rank that its launcher binds to processors of its own gets all of those;
// unbound ranks share the machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::comm {

// The processors that one rank may use.
struct ProcessorUse {
  std::string machine;          // the same for ranks with the same numbering of processors
  std::vector<int> processors;  // the processors that the rank may run on
  std::string quota_group;      // the control group whose ranks share a quota; empty: no quota
  double quota = 0;             // processors' worth of time for the whole group
};

// The processors that this process uses.
ProcessorUse own_processor_use();

std::string to_text(const ProcessorUse& use);
ProcessorUse processor_use_of(const std::string& text);

// The number of threads of every rank: the smallest share of any rank, since all ranks have one
// plan, but at least one.
int threads_of_ranks(const std::vector<ProcessorUse>& ranks);

}  // namespace snug::comm
