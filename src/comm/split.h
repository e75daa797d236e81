// Communicators of some of the ranks: those that hold the shards of one replica, and those that
// hold the same shard.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace snug::comm {

// All ranks of `group` call this in the same order of their collectives. A rank becomes a member of
// the group of those with its color, ordered by key, then by rank. What waits in the queue of one
// group does not hold up the others.
std::unique_ptr<Communicator> split(Communicator& group, int color, int key);

}  // namespace snug::comm
