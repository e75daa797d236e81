// One pass through the documents of a part, in an order of its own, of which places can be asked
// one by one: an epoch that takes a thousandth of a part takes a thousandth of the time, and no
// memory. A permutation of [0, size) that is a pure function of (seed, part, number). Threads may
// share one.
//
// It is a Feistel network on pairs (a, b) of [0, side), the smallest square that holds all places:
// each of its rounds maps (a, b) to (b, a + f(b)), which can be undone whatever f is. What leads
// out of the size goes through the rounds again, until it is in.
#pragma once

#include <array>
#include <cstdint>

namespace snug::text {

class DocumentCycle {
 public:
  // Requires 0 < size <= 2^31 and part < 2^28.
  DocumentCycle(int64_t size, uint64_t seed, int64_t part, uint64_t number);

  // Requires 0 <= place < size.
  int64_t at(int64_t place) const;

 private:
  // Four make a permutation that looks random where the side is large (Luby and Rackoff, 1988); the
  // others are for parts of a few documents.
  static constexpr uint32_t kRounds = 8;

  uint64_t size_;
  uint64_t side_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace snug::text
