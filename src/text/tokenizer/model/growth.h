// Limits how much the steps of a tokenizer may lengthen a text. Real ones at most triple it (a
// space becomes three bytes); a file that was made to exhaust memory is stopped early.
#pragma once

#include <cstddef>

#include "base/error.h"

namespace snug::text {

// Compatibility forms of single characters grow by a factor of up to 11, the largest in Unicode.
inline constexpr size_t kMaxGrowth = 16;
inline constexpr size_t kGrowthOfShortTexts = size_t{64} << 10;

// The most bytes that a text of this size may become.
constexpr size_t most_bytes_from(size_t bytes) { return bytes * kMaxGrowth + kGrowthOfShortTexts; }

// Throws UserError if there are more bytes than `most`.
inline void require_bounded(size_t bytes, size_t most) {
  if (bytes > most)
    base::throw_user_error(
        "the tokenizer's rules make more than {} bytes of a text, over {} times its size; is "
        "tokenizer.json damaged? Its replacements should add little",
        most, kMaxGrowth);
}

}  // namespace snug::text
