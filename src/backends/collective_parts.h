// Translates a collective operation into a communicator's arguments: addresses, element counts,
// types. It is the same on every backend; no tensor is read or written.
#pragma once

#include <span>
#include <vector>

#include "backends/invocation.h"
#include "comm/mesh.h"
#include "program/kinds/transfer/rank_group.h"

namespace snug::backends {

// What rank `rank` of the group sends and receives. Uses the invocation's view where a tensor may
// have padding.
std::vector<comm::GatherPart> parts_of(const program::AllGather& gather,
                                       const Invocation& invocation, int rank);
std::vector<comm::ReducePart> parts_of(const program::ReduceScatter& reduce,
                                       const Invocation& invocation, int rank);
std::vector<comm::SumPart> parts_of(const program::AllReduce& reduce, const Invocation& invocation,
                                    int rank);

// The buffers that receive the results, in the order of the operation's parts; the await of the
// collective updates them.
std::span<const Buffer> results_of(const program::AllGather& gather, const Invocation& invocation);
std::span<const Buffer> results_of(const program::ReduceScatter& reduce,
                                   const Invocation& invocation);
std::span<const Buffer> results_of(const program::AllReduce& reduce, const Invocation& invocation);

// The decided sizes of a sum's pieces. The thread that does a piece records it in the trace, which
// may be read once the sum was awaited.
comm::SumPieces pieces_of(const program::ReduceScatter& reduce, const Invocation& invocation);
comm::SumPieces pieces_of(const program::AllReduce& reduce, const Invocation& invocation);

// The communicator of the group; null where the mesh has none, which means a group of one rank.
// Fails a CHECK where the number of ranks is not the planned one.
comm::Communicator* group_of(const comm::Mesh& mesh, program::RankGroup group, int32_t ranks);

}  // namespace snug::backends
