// Which random bits an element gets: the common scheme of dropout and stochastic rounding, the same
// in every backend. Pure functions of their arguments; no state.
//
// A stream is one philox key for a whole operation:
//
//   key = first two words of philox({step, site, first_row, purpose}, {low(seed), high(seed)})
//
// where `step` and `first_row` are the two elements of the operation's `random` tensor (AdamW: its
// step, and first_row 0; Dropout and AddNoise: first_row 0 here, since it is part of the row
// below), and purpose is 1 for dropout, 2 for rounding and 3 for noise. Integers are used as their
// two's complement bits.
//
// Elements are divided into blocks of 16 philox calls, one per lane, so that sixteen (or eight, or
// four) adjacent elements of a vector use the same word of as many calls, and no shuffle is needed:
//
//   dropout: 64 columns per block. Column c is word (c % 64) / 16 of
//     philox({c / 64 * 16 + c % 16, position, row, 0}, key)
//     and is kept when that word >= dropout_threshold(probability); a kept value is multiplied by
//     dropout_scale(probability). row = first_row + token / row_length: its number in the step;
//     position = token % row_length.
//   noise: column c takes the same word as in dropout, of its own key; it is noise_unit(word).
//   rounding: 128 elements per block. With k = e % 128 / 16, element e (its row-major index) takes
//     the lower half of word k / 2 if k is even, the upper if odd, of
//     philox({low(g), high(g), plane, 0}, key), g = e / 128 * 16 + e % 16
//     plane is 0 except for AdamW: 0 weight, 1 first moment, 2 second moment. The 16 bits are added
//     to those of the fp32 value, whose upper half is then the bf16: it rounds up in magnitude with
//     the probability that makes the mean exact. Values that are not finite are rounded like
//     to_bfloat16.
#pragma once

#include <bit>
#include <cstdint>

#include "base/dtype.h"
#include "base/random.h"

namespace snug::backends {

enum class RandomPurpose : uint32_t { dropout = 1, rounding = 2, noise = 3 };

inline constexpr int64_t kDropoutBlock = 64;
inline constexpr int64_t kRoundingBlock = 128;
inline constexpr int64_t kRandomLanes = 16;
inline constexpr int64_t kRoundingParts = kRoundingBlock / kRandomLanes;

// What an operation's random bits depend on, in addition to the element.
struct RandomSource {
  int64_t seed = 0;
  int32_t site = 0;
  int32_t step = 0;
  int32_t first_row = 0;
};

constexpr base::PhiloxKey stream_key(const RandomSource& source, RandomPurpose purpose) {
  const auto seed = static_cast<uint64_t>(source.seed);
  const base::PhiloxCounter words =
      base::philox({static_cast<uint32_t>(source.step), static_cast<uint32_t>(source.site),
                    static_cast<uint32_t>(source.first_row), static_cast<uint32_t>(purpose)},
                   {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return {words[0], words[1]};
}

// The key of a dropout: its first_row is instead added to the row of each token.
constexpr base::PhiloxKey dropout_key(RandomSource source) {
  source.first_row = 0;
  return stream_key(source, RandomPurpose::dropout);
}
// The key of noise, likewise.
constexpr base::PhiloxKey noise_key(RandomSource source) {
  source.first_row = 0;
  return stream_key(source, RandomPurpose::noise);
}

// The number from [-1, 1) that a word stands for: its upper 23 bits are the mantissa of a float
// from [2, 4), from which 3 is taken without rounding.
constexpr float noise_unit(uint32_t word) {
  return std::bit_cast<float>(0x40000000U | word >> 9) - 3.0F;
}

// Elements whose words are below it are dropped. Requires 0 <= probability < 1.
constexpr uint32_t dropout_threshold(float probability) {
  return static_cast<uint32_t>(static_cast<double>(probability) * 4294967296.0);
}

constexpr float dropout_scale(float probability) { return 1.0F / (1.0F - probability); }

// The word that decides for one element of a dropout or of noise. `row` is the number of its row in
// the step.
constexpr uint32_t dropout_word(base::PhiloxKey key, uint32_t row, uint32_t position,
                                int64_t column) {
  const int64_t call = column / kDropoutBlock * kRandomLanes + column % kRandomLanes;
  const int64_t word = column % kDropoutBlock / kRandomLanes;
  return base::philox({static_cast<uint32_t>(call), position, row, 0},
                      key)[static_cast<size_t>(word)];
}

// The words of one call, which round kRoundingParts elements: those of the call's lane in a block.
constexpr base::PhiloxCounter rounding_words(base::PhiloxKey key, uint32_t plane, int64_t call) {
  const auto number = static_cast<uint64_t>(call);
  return base::philox(
      {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), plane, 0}, key);
}

// The 16 bits that round element `part` of these.
constexpr uint32_t rounding_part(const base::PhiloxCounter& words, int64_t part) {
  const uint32_t word = words[static_cast<size_t>(part / 2)];
  return part % 2 == 0 ? word & 0xffffU : word >> 16;
}

// The 16 bits that round one element.
constexpr uint32_t rounding_bits(base::PhiloxKey key, uint32_t plane, int64_t element) {
  const int64_t call = element / kRoundingBlock * kRandomLanes + element % kRandomLanes;
  return rounding_part(rounding_words(key, plane, call), element % kRoundingBlock / kRandomLanes);
}

constexpr base::BFloat16 round_stochastically(float value, uint32_t bits16) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000U) == 0x7f800000U) return base::to_bfloat16(value);
  return {static_cast<uint16_t>((bits + bits16) >> 16)};
}

}  // namespace snug::backends
