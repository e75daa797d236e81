// The ranks of a job as a grid of replicas x shards: rank = replica * shards + shard, so that the
// shards of a replica are neighbours, which launchers put on one node.
#pragma once

#include "comm/communicator.h"

namespace snug::comm {

// The groups of a rank. The same communicator may stand for two of them; null: a group of one rank.
struct Mesh {
  Communicator* all = nullptr;
  Communicator* shards = nullptr;    // the ranks of this replica, by their shard
  Communicator* replicas = nullptr;  // the ranks with this shard, by their replica
  int local_rank = 0;                // among the ranks of this machine

  static int rank_in(const Communicator* group) { return group == nullptr ? 0 : group->rank(); }
  static int size_of(const Communicator* group) { return group == nullptr ? 1 : group->size(); }
  int rank() const { return rank_in(all); }
  int size() const { return size_of(all); }
  int shard() const { return rank_in(shards); }
};

}  // namespace snug::comm
