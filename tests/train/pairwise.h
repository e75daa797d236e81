// Cases that cover every pair of values of any two dimensions, in far fewer cases than all
// combinations.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace snug::testing {

// For each dimension the index of its value.
using Choice = std::vector<size_t>;

// Greedy: of some random candidates, each of which holds a pair that is not covered yet, the one
// that covers most is taken, until all pairs are covered. The same seed gives the same cases.
class PairwiseCases {
 public:
  // Value i of dimension a and value j of dimension b > a.
  struct Pair {
    size_t a, i, b, j;
    auto operator<=>(const Pair&) const = default;
  };
  // Of pairs that mean nothing: no case has them, and none are covered.
  using IsExcluded = std::function<bool(const Pair&)>;

  // `sizes`: how many values each dimension has, at least one. Each value must be in some case
  // without excluded pairs.
  PairwiseCases(std::vector<size_t> sizes, uint32_t seed, IsExcluded is_excluded = {})
      : sizes_(std::move(sizes)), generator_(seed), is_excluded_(std::move(is_excluded)) {
    for (size_t a = 0; a < sizes_.size(); ++a)
      for (size_t b = a + 1; b < sizes_.size(); ++b)
        for (size_t i = 0; i < sizes_[a]; ++i)
          for (size_t j = 0; j < sizes_[b]; ++j)
            if (const Pair pair{a, i, b, j}; !excludes(pair)) uncovered_.insert(pair);
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
      if (most == 0) continue;
      for (const Pair& pair : covered_by(best)) uncovered_.erase(pair);
      cases.push_back(std::move(best));
    }
    return cases;
  }

 private:
  static constexpr int kCandidates = 200;

  bool excludes(const Pair& pair) const { return is_excluded_ && is_excluded_(pair); }

  static std::vector<Pair> pairs_of(const Choice& choice) {
    std::vector<Pair> pairs;
    for (size_t a = 0; a < choice.size(); ++a)
      for (size_t b = a + 1; b < choice.size(); ++b) pairs.push_back({a, choice[a], b, choice[b]});
    return pairs;
  }

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
    std::vector<Pair> pairs = pairs_of(choice);
    if (std::ranges::any_of(pairs, [&](const Pair& pair) { return excludes(pair); })) return {};
    std::erase_if(pairs, [&](const Pair& pair) { return !uncovered_.contains(pair); });
    return pairs;
  }

  std::vector<size_t> sizes_;
  std::mt19937 generator_;
  IsExcluded is_excluded_;
  std::set<Pair> uncovered_;
};

}  // namespace snug::testing
