// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A value is a pure function of (key, counter), so it does not depend on batch
// size, thread count or the order of evaluation.
#pragma once

#include <array>
#include <cstdint>

namespace snug::base {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Four independent uniform 32-bit words for one counter.
constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53U} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

// Uniform in [0, 1) with 24 random bits.
constexpr float uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

// A 64-bit key from a name (FNV-1a): the same name gives the same stream on every platform.
constexpr uint64_t hash_name(const char* text, uint64_t size) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (uint64_t i = 0; i < size; ++i)
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3ULL;
  return hash;
}

}  // namespace snug::base
