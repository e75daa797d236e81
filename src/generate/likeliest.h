// The largest of a row of logits, found by the largest of each block of it: one pass at the speed
// of memory, and a closer look at the few blocks that matter. What is no number is never among
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace snug::generate {

// A token with its logit, or with a weight made of it.
struct Candidate {
  double weight = 0;
  int32_t id = 0;
};

// The largest of each block of logits; minus infinity where a block has no number. Owns its
// scratch; of one thread.
class BlockMaxima {
 public:
  void find(std::span<const float> logits);

  // The id of the largest logit, the smallest id of equal ones; -1 where none is above minus
  // infinity.
  int32_t likeliest() const;
  // The `count` largest, largest first and of equal ones the smaller id first; fewer where there
  // are not so many numbers.
  void likeliest(size_t count, std::vector<Candidate>& candidates);

 private:
  // A bound that `count` logits reach, close to the smallest of them.
  float bound(size_t count);

  std::span<const float> logits_;
  std::vector<float> maxima_;
  std::vector<float> scratch_;
};

}  // namespace snug::generate
