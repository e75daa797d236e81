// Finds the largest logits of a row by way of the largest logit of each block: one pass at memory
// speed, then a closer look at the few blocks that matter. NaN is never among the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace snug::engine {

// A token with its logit, or with a weight computed from the logit.
struct Candidate {
  double weight = 0;
  int32_t id = 0;
};

// The largest logit of each block; minus infinity where a block holds only NaN. Owns its scratch
// memory, so each thread needs an object of its own.
class BlockMaxima {
 public:
  void find(std::span<const float> logits);

  // The id of the largest logit, or the smallest such id where logits are equal; -1 where no logit
  // is above minus infinity.
  int32_t likeliest() const;
  // The `count` largest logits in descending order, equal ones in ascending order of id; fewer
  // where there are fewer that are numbers.
  void likeliest(size_t count, std::vector<Candidate>& candidates);

 private:
  // A value that at least `count` logits reach, close to the count-th largest logit.
  float bound(size_t count);

  std::span<const float> logits_;
  std::vector<float> maxima_;
  std::vector<float> scratch_;
};

}  // namespace snug::engine
