// How the ranks of a machine share its processors, where these are what computes.
//
// Each rank has the threads that compute and one more, which sends, receives and sums what the
// ranks do together (comm/host_communicator.h). Where no processor is left for it, it takes the
// time of one that computes: threads of an operation wait for each other, so all of them lose the
// time that one of them lacks a processor.
#pragma once

#include <cstdint>

namespace snug::plan {

// What the system says of processors; `allowed` are those of this process, which a launcher may
// have bound to a part.
struct Processors {
  int64_t allowed = 1;
  int64_t online = 1;
};

struct ProcessorSharing {
  double threads_per_processor = 1;  // of those that compute, never less than 1
  bool collectives_compute = false;  // a collective takes the time of what computes
};

// How ranks with so many threads each share the CPU. Where this process may not use enough
// processors for all ranks, it is taken to be bound to some of its own if the machine has enough
// for all.
ProcessorSharing share_processors(int64_t ranks, int64_t threads, const Processors& processors);

// The processors of this process. What a quota of its control group allows counts as online.
Processors processors_here();

}  // namespace snug::plan
