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

// The order of tokens in lists of the likeliest: of equal ones the smallest id comes first.
inline bool is_likelier(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

// The largest logit of each block; minus infinity where a block holds only NaN. Owns its scratch
// memory, so each thread needs an object of its own.
class BlockMaxima {
 public:
  void find(std::span<const float> logits);

  // The id of the largest logit, or the smallest such id where logits are equal; -1 where no logit
  // is above minus infinity.
  int32_t likeliest() const;
  // The `count` largest logits in descending order, equal ones in ascending order of id; fewer
  // where there are fewer above minus infinity.
  void likeliest(size_t count, std::vector<Candidate>& candidates);
  // The same, and all logits that equal the last of them.
  void likeliest_and_equals(size_t count, std::vector<Candidate>& candidates);
  // All logits that are at least `least`, in ascending order of id.
  void all_from(float least, std::vector<Candidate>& candidates) const;

 private:
  // A value that at least `count` logits reach, close to the count-th largest logit.
  float bound(size_t count);
  // Sorts the `count` largest logits to the front; returns how many there are.
  std::ptrdiff_t sort_likeliest(size_t count, std::vector<Candidate>& candidates);

  std::span<const float> logits_;
  std::vector<float> maxima_;
  std::vector<float> scratch_;
};

}  // namespace snug::engine
