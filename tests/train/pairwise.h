// Cases that cover every pair of values of any two dimensions, in far fewer cases than all
// combinations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace snug::testing {

// For each dimension the index of its value.
using Choice = std::vector<size_t>;

// Greedy: of some random candidates, each of which holds a pair that is not covered yet, the one
// that covers most is taken, until all pairs are covered. The same seed gives the same cases.
class PairwiseCases {
 public:
  // `sizes`: how many values each dimension has, at least one.
  PairwiseCases(std::vector<size_t> sizes, uint32_t seed)
      : sizes_(std::move(sizes)), generator_(seed) {
    for (size_t a = 0; a < sizes_.size(); ++a)
      for (size_t b = a + 1; b < sizes_.size(); ++b)
        for (size_t i = 0; i < sizes_[a]; ++i)
          for (size_t j = 0; j < sizes_[b]; ++j) uncovered_.emplace(a, i, b, j);
  }

  std::vector<Choice> take() {
    std::vector<Choice> cases;
    while (!uncovered_.empty()) {
      Choice best;
      size_t most = 0;
      for (int candidate = 0; candidate < kCandidates; ++candidate) {
        Choice choice = random_choice();
        if (const size_t count = covered_by(choice).size(); count > most) {
          most = count;
          best = std::move(choice);
        }
      }
      for (const Pair& pair : covered_by(best)) uncovered_.erase(pair);
      cases.push_back(std::move(best));
    }
    return cases;
  }

 private:
  // Of dimension, value, dimension, value.
  using Pair = std::tuple<size_t, size_t, size_t, size_t>;
  static constexpr int kCandidates = 200;

  Choice random_choice() {
    Choice choice;
    for (const size_t size : sizes_)
      choice.push_back(std::uniform_int_distribution<size_t>(0, size - 1)(generator_));
    auto pair = uncovered_.begin();
    std::advance(pair, std::uniform_int_distribution<size_t>(0, uncovered_.size() - 1)(generator_));
    const auto& [a, i, b, j] = *pair;
    choice[a] = i;
    choice[b] = j;
    return choice;
  }

  std::vector<Pair> covered_by(const Choice& choice) const {
    std::vector<Pair> pairs;
    for (size_t a = 0; a < choice.size(); ++a)
      for (size_t b = a + 1; b < choice.size(); ++b)
        if (const Pair pair{a, choice[a], b, choice[b]}; uncovered_.contains(pair))
          pairs.push_back(pair);
    return pairs;
  }

  std::vector<size_t> sizes_;
  std::mt19937 generator_;
  std::set<Pair> uncovered_;
};

}  // namespace snug::testing
