// How large NEFTune's noise is on the elements of a token, the same in all backends. Constexpr, so
// that kernels can call it directly.
#pragma once

#include <cmath>
#include <cstdint>

namespace snug::backends {

// The number of tokens of the segment that a token lies in; 0: it lies in none. `bounds` (segments,
// 2): [begin, end) of each, in ascending order. Segments without tokens may stand between others.
constexpr int64_t segment_length_at(const int32_t* bounds, int64_t segments, int64_t token) {
  // Afterwards `first` segments begin at the token or before it: the last of them may hold it.
  int64_t first = 0;
  for (int64_t last = segments; first < last;) {
    const int64_t middle = first + (last - first) / 2;
    if (bounds[2 * middle] <= token)
      first = middle + 1;
    else
      last = middle;
  }
  if (first == 0) return 0;
  const int32_t* found = bounds + 2 * (first - 1);
  return token < found[1] ? found[1] - found[0] : 0;
}

// The largest noise on an element of a token in a segment of so many tokens, in rows of so many
// columns.
constexpr float noise_scale(float alpha, int64_t length, int64_t columns) {
  if (length == 0) return 0.0F;
  return alpha / std::sqrt(static_cast<float>(length) * static_cast<float>(columns));
}

}  // namespace snug::backends
