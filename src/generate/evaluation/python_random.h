// The numbers that Python's random.Random(seed) draws: lm-evaluation-harness chooses the examples
// that come before a question by them, so that the same seed shows the same examples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace snug::generate {

class PythonRandom {
 public:
  explicit PythonRandom(uint32_t seed);

  // random.sample of the numbers from 0 to `size` - 1. Requires count <= size.
  std::vector<size_t> sample(size_t size, size_t count);

 private:
  static constexpr size_t kWords = 624;  // of MT19937's state
  uint32_t next();
  size_t below(size_t limit);
  void refill();

  std::array<uint32_t, kWords> state_{};
  size_t at_ = kWords;
};

}  // namespace snug::generate
