// How a sum of many tensors is cut into pieces (SumPieces): the same way on the host, on a GPU and
// in plans.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace snug::comm {

// Elements [first, first + count) of a part; for a ReducePart they are elements of its shard.
struct PartRange {
  size_t part;
  int64_t first;
  int64_t count;
};

// Where the next piece begins.
struct Cursor {
  size_t part = 0;
  int64_t element = 0;
};

inline bool travel_alike(const ReducePart& a, const ReducePart& b) {
  return a.sent_type == b.sent_type;
}
inline bool travel_alike(const SumPart& a, const SumPart& b) {
  return a.sent_type == b.sent_type && a.type == b.type;
}

// The number of elements that fit in a piece: elements of each shard for a reduce-scatter; for an
// all-reduce all elements, which are divided into one slice per rank.
inline int64_t room_of(const ReducePart& /*part*/, int64_t piece_elements, int /*ranks*/) {
  return piece_elements > 0 ? piece_elements : std::numeric_limits<int64_t>::max();
}
inline int64_t room_of(const SumPart& /*part*/, int64_t piece_elements, int ranks) {
  return piece_elements > 0 ? piece_elements * ranks : std::numeric_limits<int64_t>::max();
}

// The number of elements that a rank sends each other rank for a piece of `count` elements.
inline int64_t sent_elements(const ReducePart& /*part*/, int64_t count, int /*ranks*/) {
  return count;
}
inline int64_t sent_elements(const SumPart& /*part*/, int64_t count, int ranks) {
  return (count + ranks - 1) / ranks;
}

// Sets `ranges` to the next elements, at most `room`, of consecutive parts with the same types.
// Returns their number; 0 when none is left.
template <typename Part>
int64_t next_ranges(std::span<const Part> parts, Cursor& cursor, int64_t room,
                    std::vector<PartRange>& ranges) {
  ranges.clear();
  int64_t all = 0;
  while (cursor.part < parts.size()) {
    const Part& part = parts[cursor.part];
    if (part.elements > 0 && all == room) break;
    if (!ranges.empty() && !travel_alike(part, parts[ranges.front().part])) break;
    const int64_t count = std::min(part.elements - cursor.element, room - all);
    if (count > 0) ranges.push_back({cursor.part, cursor.element, count});
    all += count;
    cursor.element += count;
    if (cursor.element == part.elements) cursor = {cursor.part + 1, 0};
  }
  return all;
}

}  // namespace snug::comm
