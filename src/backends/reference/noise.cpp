#include "program/kinds/elementwise/noise.h"

#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

using program::AddNoise;

// The tokens of the segment that a token lies in; 0: it lies in none.
int64_t tokens_around(const Integers& bounds, int64_t token) {
  for (int64_t s = 0; 2 * s < bounds.count(); ++s)
    if (bounds[2 * s] <= token && token < bounds[2 * s + 1])
      return bounds[2 * s + 1] - bounds[2 * s];
  return 0;
}

template <typename T>
void run(const AddNoise& noise, const Invocation& invocation) {
  const Floats<T> x(invocation[AddNoise::kX]);
  const Integers bounds(invocation[AddNoise::kBounds]);
  const Integers random(invocation[AddNoise::kRandom]);
  const Floats<T> y(invocation[AddNoise::kY]);
  const base::PhiloxKey key = noise_key({noise.seed, noise.site, random[0]});
  for (int64_t t = 0; t < y.rows(); ++t) {
    const auto row = static_cast<uint32_t>(random[1] + t / noise.row_length);
    const auto position = static_cast<uint32_t>(t % noise.row_length);
    const int64_t length = tokens_around(bounds, t);
    const T scale =
        length == 0 ? T{0}
                    : static_cast<T>(noise.alpha) / std::sqrt(static_cast<T>(length * y.columns()));
    for (int64_t j = 0; j < y.columns(); ++j) {
      const T unit = static_cast<T>(noise_unit(dropout_word(key, row, position, j)));
      y.set(t, j, x.at(t, j) + scale * unit);
    }
  }
}

}  // namespace

SNUG_REFERENCE_KIND(AddNoise);

}  // namespace snug::backends::reference
