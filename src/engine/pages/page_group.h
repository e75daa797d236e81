// A group of layers that keep alike, and its pool of pages. Layers of a group share one table of
// pages: those that see every token before a query are one group, those of each window another.
#pragma once

#include <cstdint>

namespace snug::engine {

struct PageGroup {
  int64_t pages = 0;   // in the group's pool
  int64_t window = 0;  // a query sees its own token and window - 1 before it; 0: all before it
};

}  // namespace snug::engine
