#include "text/row/document_cycle.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace snug::text {
namespace {

constexpr auto kCycleSite = static_cast<uint32_t>(base::hash_name("document cycle", 14));

// The finaliser of SplitMix64 (Steele et al., "Fast splittable pseudorandom number generators",
// OOPSLA 2014).
uint64_t mixed(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

uint64_t smallest_side(uint64_t size) {
  auto side = static_cast<uint64_t>(std::sqrt(static_cast<double>(size)));
  while (side * side < size) ++side;
  return side;
}

}  // namespace

DocumentCycle::DocumentCycle(int64_t size, uint64_t seed, int64_t part, uint64_t number)
    : size_(static_cast<uint64_t>(size)), side_(smallest_side(size_)), keys_{} {
  SNUG_CHECK(size > 0 && size <= int64_t{1} << 31, "{} documents", size);
  SNUG_CHECK(part >= 0 && part < int64_t{1} << 28, "part {}", part);
  for (uint32_t round = 0; round < kRounds; ++round) {
    const auto words =
        base::philox({static_cast<uint32_t>(part) * kRounds + round, static_cast<uint32_t>(number),
                      static_cast<uint32_t>(number >> 32), kCycleSite},
                     {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    keys_[round] = uint64_t{words[0]} << 32 | words[1];
  }
}

int64_t DocumentCycle::at(int64_t place) const {
  auto value = static_cast<uint64_t>(place);
  do {
    uint64_t first = value / side_;
    uint64_t second = value % side_;
    for (const uint64_t key : keys_) {
      // Uniform in [0, side): the high half of a product of 32-bit words.
      const uint64_t added = (mixed(second + key) >> 32) * side_ >> 32;
      const uint64_t sum = first + added;
      first = second;
      second = sum < side_ ? sum : sum - side_;
    }
    value = first * side_ + second;
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

}  // namespace snug::text
