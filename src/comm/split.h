// Splits a communicator into groups: those that hold the shards of one replica, and those that hold
// the same shard.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace snug::comm {

// A collective: all ranks of `group` call it in the same order. A rank joins the group of those
// with its color, ordered by key, then by rank. The groups have separate queues, so one does not
// hold up another.
std::unique_ptr<Communicator> split(Communicator& group, int color, int key);

}  // namespace snug::comm
