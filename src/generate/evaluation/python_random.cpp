#include "generate/evaluation/python_random.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace snug::generate {

// MT19937 with the seeding by an array of Matsumoto and Nishimura, as CPython calls it with one
// word.
PythonRandom::PythonRandom(uint32_t seed) {
  state_[0] = 19650218;
  const auto mixed = [&](size_t i, uint32_t factor) {
    return (state_[i - 1] ^ (state_[i - 1] >> 30U)) * factor;
  };
  for (size_t i = 1; i < kWords; ++i) state_[i] = mixed(i, 1812433253) + static_cast<uint32_t>(i);
  size_t i = 1;
  const auto advance = [&] {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  };
  for (size_t k = 0; k < kWords; ++k) {
    state_[i] = (state_[i] ^ mixed(i, 1664525)) + seed;
    advance();
  }
  for (size_t k = 0; k + 1 < kWords; ++k) {
    state_[i] = (state_[i] ^ mixed(i, 1566083941)) - static_cast<uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000U;
}

void PythonRandom::refill() {
  constexpr size_t kOther = 397;
  for (size_t i = 0; i < kWords; ++i) {
    const uint32_t bits = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
    state_[i] =
        state_[(i + kOther) % kWords] ^ (bits >> 1U) ^ ((bits & 1U) != 0 ? 0x9908b0dfU : 0U);
  }
  at_ = 0;
}

uint32_t PythonRandom::next() {
  if (at_ == kWords) refill();
  uint32_t value = state_[at_++];
  value ^= value >> 11U;
  value ^= (value << 7U) & 0x9d2c5680U;
  value ^= (value << 15U) & 0xefc60000U;
  return value ^ (value >> 18U);
}

size_t PythonRandom::below(size_t limit) {
  const auto bits = static_cast<uint32_t>(std::bit_width(limit));
  if (bits == 0) return 0;
  size_t value = limit;
  while (value >= limit) value = next() >> (32 - bits);
  return value;
}

std::vector<size_t> PythonRandom::sample(size_t size, size_t count) {
  size_t most_listed = 21;
  if (count > 5) {
    size_t power = 1;
    while (power < 3 * count) power *= 4;
    most_listed += power;
  }
  std::vector<size_t> drawn;
  if (size <= most_listed) {
    std::vector<size_t> pool(size);
    std::iota(pool.begin(), pool.end(), size_t{0});
    for (size_t i = 0; i < count; ++i) {
      const size_t at = below(size - i);
      drawn.push_back(pool[at]);
      pool[at] = pool[size - i - 1];
    }
    return drawn;
  }
  while (drawn.size() < count) {
    const size_t number = below(size);
    if (std::ranges::find(drawn, number) == drawn.end()) drawn.push_back(number);
  }
  return drawn;
}

}  // namespace snug::generate
