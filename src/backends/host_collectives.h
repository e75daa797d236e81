// Collectives of a backend whose tensors are in host memory. The operation begins the collective,
// and its await waits for it.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "backends/invocation.h"
#include "comm/mesh.h"
#include "program/kinds/transfer/rank_group.h"

namespace snug::backends {

class HostCollectives {
 public:
  // `mesh` may be null, for a single rank. It must outlive the object.
  explicit HostCollectives(const comm::Mesh* mesh)
      : mesh_(mesh != nullptr ? *mesh : comm::Mesh{}) {}

  // These fail a CHECK where the group's number of ranks is not the planned one.
  void begin(const program::AllGather& gather, const Invocation& invocation);
  void begin(const program::ReduceScatter& reduce, const Invocation& invocation);
  void begin(const program::AllReduce& reduce, const Invocation& invocation);
  // Returns at once if the awaited operation was not a collective.
  void await(const Invocation& invocation);

  int shard_rank() const { return mesh_.shard(); }

 private:
  struct Begun {
    comm::Communicator* group;
    comm::Ticket ticket;
  };
  comm::Communicator& group(program::RankGroup group, int32_t ranks);
  void note(const Invocation& invocation, std::span<const Buffer> results,
            comm::Communicator& group, comm::Ticket ticket);

  comm::Mesh mesh_;
  std::unique_ptr<comm::Communicator> alone_;          // for groups of one rank; created on demand
  std::unordered_map<const std::byte*, Begun> begun_;  // by the first destination of each
};

}  // namespace snug::backends
