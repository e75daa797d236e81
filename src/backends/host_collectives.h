// Collectives of a backend whose tensors lie in the host's memory: begun by the operation, waited
// for by its await.
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
  // `mesh` may be null: one rank alone. It must outlive the object.
  explicit HostCollectives(const comm::Mesh* mesh)
      : mesh_(mesh != nullptr ? *mesh : comm::Mesh{}) {}

  // Fail a CHECK where the group has another number of ranks than planned.
  void begin(const program::AllGather& gather, const Invocation& invocation);
  void begin(const program::ReduceScatter& reduce, const Invocation& invocation);
  void begin(const program::AllReduce& reduce, const Invocation& invocation);
  // Returns at once where what is awaited was no collective.
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
  std::unique_ptr<comm::Communicator> alone_;          // stands for groups of one rank, once needed
  std::unordered_map<const std::byte*, Begun> begun_;  // by what the first pair is copied to
};

}  // namespace snug::backends
