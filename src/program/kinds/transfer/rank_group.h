// Which ranks a collective joins.
#pragma once

#include <cstdint>

#include "base/words.h"

namespace snug::program {

// Which ranks: those that hold the parts of one replica, those that hold the same part of all
// replicas, or all.
enum class RankGroup : uint8_t { shards, replicas, all };
constexpr auto words_of(RankGroup /*type*/) {
  return base::words<RankGroup>(
      {{RankGroup::shards, "shards"}, {RankGroup::replicas, "replicas"}, {RankGroup::all, "all"}});
}

}  // namespace snug::program
