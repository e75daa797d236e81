// How many things there are of each length, in bounded memory, whatever the lengths: those below
// 256 are counted one by one, longer ones in steps of less than one in a hundred. A value.
#pragma once

#include <cstdint>
#include <vector>

namespace snug::text {

class LengthCounts {
 public:
  void add(int64_t length);
  void add_all(const LengthCounts& other);

  int64_t size() const { return size_; }  // how many were added
  int64_t longest() const { return longest_; }
  double mean() const;
  // The shortest length that this share of them does not exceed, at most one in a hundred too long;
  // 0 where there are none.
  int64_t holding(double share) const;
  // How many are longer. Those of one step count as the longest of it.
  int64_t longer_than(int64_t length) const;

  struct Bin {
    int64_t first = 0;  // the shortest and the longest length that it counts
    int64_t last = 0;
    int64_t count = 0;
  };
  // At most so many bins of one width, a round number, from the shortest to the longest; what 99 %
  // do not exceed decides the width, and the last bin takes all that is longer.
  std::vector<Bin> bins(int64_t most) const;

 private:
  std::vector<int64_t> counts_;  // by step, as far as they are needed
  int64_t size_ = 0;
  int64_t sum_ = 0;
  int64_t longest_ = 0;
};

}  // namespace snug::text
