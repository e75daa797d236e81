// Which values a random tensor gets: the scheme of initial weights, with the same bits in every
// backend.
//
// Four elements form a group: element e of a weight is value e % 4 of group e / 4, which is
// computed from the words of philox({low(e / 4), high(e / 4), 0, 0}, key). Two words give two
// normal values (Box and Muller 1958). Logarithm, sine and cosine are series of products and sums,
// each rounded separately on every machine: files that include this must not fuse a product and a
// sum (-ffp-contract=off, --fmad=false). So the bits do not depend on any math library.
//
// Pure functions of their arguments; no state.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "program/kinds/transfer/fill_form.h"

namespace snug::backends {

inline constexpr int64_t kValueGroup = 4;

// What the values of a tensor depend on, in addition to the element's index.
struct RandomValues {
  program::FillForm form = program::FillForm::constant;
  base::PhiloxKey key{};
  // The constant; the standard deviation of normal values; uniform values are in [-scale, scale).
  float scale = 0.0F;
};

using ValueGroup = std::array<float, static_cast<size_t>(kValueGroup)>;

// -2 ln(count / 2^24) for count in 1 .. 2^24. ln m = 2 atanh(s) with s = (m - 1) / (m + 1), for m
// in [sqrt(1/2), sqrt(2)); the first omitted term is below 2^-28 of the sum.
constexpr float minus_twice_log(uint32_t count) {
  constexpr uint32_t kRootOfHalf = 0x3f3504f3U;
  constexpr float kLn2 = 0.693147180559945309F;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(count));
  const auto exponent = static_cast<int32_t>(bits - kRootOfHalf) >> 23;
  const auto m = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23));
  const float s = (m - 1.0F) / (m + 1.0F);
  const float z = s * s;
  float sum = 1.0F / 9.0F;
  sum = sum * z + 1.0F / 7.0F;
  sum = sum * z + 1.0F / 5.0F;
  sum = sum * z + 1.0F / 3.0F;
  const float log_m = 2.0F * s + 2.0F * s * (z * sum);
  return -2.0F * (static_cast<float>(exponent - 24) * kLn2 + log_m);
}

struct Direction {
  float cosine = 1.0F;
  float sine = 0.0F;
};

// The direction of the angle 2 pi turn / 2^24, for turn below 2^24: a series in the difference from
// the nearest quarter turn, which is at most pi / 4.
constexpr Direction direction(uint32_t turn) {
  constexpr uint32_t kQuarter = 1U << 22;
  constexpr float kUnit = 1.57079632679489661923F / static_cast<float>(kQuarter);
  const uint32_t quarters = (turn + kQuarter / 2) / kQuarter;
  const auto beyond = static_cast<int32_t>(turn) - static_cast<int32_t>(quarters * kQuarter);
  const float x = static_cast<float>(beyond) * kUnit;
  const float z = x * x;
  float sine = 1.0F / 362880.0F;
  sine = sine * z - 1.0F / 5040.0F;
  sine = sine * z + 1.0F / 120.0F;
  sine = sine * z - 1.0F / 6.0F;
  sine = x + x * (z * sine);
  float cosine = -1.0F / 3628800.0F;
  cosine = cosine * z + 1.0F / 40320.0F;
  cosine = cosine * z - 1.0F / 720.0F;
  cosine = cosine * z + 1.0F / 24.0F;
  cosine = cosine * z - 1.0F / 2.0F;
  cosine = 1.0F + cosine * z;
  switch (quarters % 4) {
    case 1:
      return {-sine, cosine};
    case 2:
      return {-cosine, -sine};
    case 3:
      return {sine, -cosine};
    default:
      return {cosine, sine};
  }
}

// The values of one group. `root` is the correctly rounded square root, which has different names
// on host and device.
template <typename Root>
constexpr ValueGroup value_group(const RandomValues& values, int64_t group, const Root& root) {
  ValueGroup four{values.scale, values.scale, values.scale, values.scale};
  if (values.form == program::FillForm::constant) return four;
  const auto number = static_cast<uint64_t>(group);
  const base::PhiloxCounter words = base::philox(
      {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0}, values.key);
  if (values.form == program::FillForm::uniform) {
    for (size_t i = 0; i < four.size(); ++i)
      four[i] = (2.0F * base::uniform(words[i]) - 1.0F) * values.scale;
    return four;
  }
  for (size_t pair = 0; pair < four.size(); pair += 2) {
    const float radius = root(minus_twice_log((words[pair] >> 8) + 1));
    const Direction towards = direction(words[pair + 1] >> 8);
    four[pair] = radius * towards.cosine * values.scale;
    four[pair + 1] = radius * towards.sine * values.scale;
  }
  return four;
}

}  // namespace snug::backends
