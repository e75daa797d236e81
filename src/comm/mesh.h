// The ranks of a job as a grid of replicas x shards: rank = replica * shards + shard, so that the
// shards of a replica are consecutive ranks, which launchers place on one node.
#pragma once

#include "comm/communicator.h"

namespace snug::comm {

// The groups that a rank belongs to. Two of them may be the same communicator; null stands for a
// group of one rank.
struct Mesh {
  Communicator* all = nullptr;
  Communicator* shards = nullptr;    // the ranks of this replica, ordered by shard
  Communicator* replicas = nullptr;  // the ranks with this shard, ordered by replica
  int local_rank = 0;                // its number among the ranks of this machine

  static int rank_in(const Communicator* group) { return group == nullptr ? 0 : group->rank(); }
  static int size_of(const Communicator* group) { return group == nullptr ? 1 : group->size(); }
  int rank() const { return rank_in(all); }
  int size() const { return size_of(all); }
  int shard() const { return rank_in(shards); }
};

}  // namespace snug::comm
