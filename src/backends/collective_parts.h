// Turns an operation of several ranks into what a communicator is given: addresses, elements,
// types. It is the same on every backend; nothing is read or written.
#pragma once

#include <span>
#include <vector>

#include "backends/invocation.h"
#include "comm/mesh.h"
#include "program/kinds/transfer/rank_group.h"

namespace snug::backends {

// What rank `rank` of the group gives and gets. The invocation's view is looked at where parts of a
// tensor may be padding.
std::vector<comm::GatherPart> parts_of(const program::AllGather& gather,
                                       const Invocation& invocation, int rank);
std::vector<comm::ReducePart> parts_of(const program::ReduceScatter& reduce,
                                       const Invocation& invocation, int rank);
std::vector<comm::SumPart> parts_of(const program::AllReduce& reduce, const Invocation& invocation,
                                    int rank);

// What ends up in them, the n-th part of the operation in the n-th: what their await updates.
std::span<const Buffer> results_of(const program::AllGather& gather, const Invocation& invocation);
std::span<const Buffer> results_of(const program::ReduceScatter& reduce,
                                   const Invocation& invocation);
std::span<const Buffer> results_of(const program::AllReduce& reduce, const Invocation& invocation);

// The pieces of a sum, as decided. Those that are done are noted in the trace, by the thread that
// does them; it is to be read once the sum was awaited.
comm::SumPieces pieces_of(const program::ReduceScatter& reduce, const Invocation& invocation);
comm::SumPieces pieces_of(const program::AllReduce& reduce, const Invocation& invocation);

// The communicator of the group; null where the mesh has none, which is then of one rank. Fails a
// CHECK where the group has another number of ranks than planned.
comm::Communicator* group_of(const comm::Mesh& mesh, program::RankGroup group, int32_t ranks);

}  // namespace snug::backends
