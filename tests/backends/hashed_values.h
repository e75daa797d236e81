// Numbers that scripts/oracles/adamw_8bit.py makes too (`values`), so that no file has to hold
// them.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace snug::backends::test {

// A hash of 32 bits (Mueller's).
inline uint32_t mixed(uint32_t x) {
  for (int round = 0; round < 2; ++round) x = ((x >> 16) ^ x) * 0x45D9F3BU;
  return (x >> 16) ^ x;
}

// Between 2^-10 and 1.001 in magnitude, mostly small.
inline std::vector<float> hashed_values(int64_t count, uint32_t salt) {
  std::vector<float> made;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = mixed(static_cast<uint32_t>(i) + salt * 0x9E3779B9U);
    const float uniform = static_cast<float>(word >> 8) * 0x1p-23F - 1.0F;
    const float cube = uniform * uniform * uniform;
    made.push_back(cube + std::copysign(0x1p-10F, cube));
  }
  return made;
}

}  // namespace snug::backends::test
