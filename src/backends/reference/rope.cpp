#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/attention/rope.h"

namespace snug::backends::reference {
namespace {

template <typename T>
void run(const program::RotaryTable& rotary, const Invocation& invocation) {
  const Integers positions(invocation[program::RotaryTable::kPositions]);
  const Floats<T> inverse_frequency(invocation[program::RotaryTable::kInverseFrequency]);
  const Floats<T> table(invocation[program::RotaryTable::kTable]);
  const int64_t half = inverse_frequency.count();
  for (int64_t t = 0; t < positions.count(); ++t) {
    const auto factor = static_cast<T>(row_factor(rotary, positions[t]));
    for (int64_t i = 0; i < half; ++i) {
      // The angle is a double even if T is float: as a float, an angle of 10^5 would lose five of
      // its seven digits.
      const double angle = positions[t] * static_cast<double>(inverse_frequency[i]);
      table.set(t, i, static_cast<T>(std::cos(angle)) * factor);
      table.set(t, half + i, static_cast<T>(std::sin(angle)) * factor);
    }
  }
}

template <typename T>
void run(const program::Rope& rope, const Invocation& invocation) {
  const Floats<T> x(invocation[program::Rope::kX]);
  const Floats<T> table(invocation[program::Rope::kTable]);
  const Floats<T> y(invocation[program::Rope::kY]);
  const int64_t width = rotated_width(rope);
  const int64_t half = width / 2;
  const int64_t rotated = rope.rotated_heads > 0 ? rope.rotated_heads * rope.head_dim : x.columns();
  for (int64_t t = 0; t < x.rows(); ++t) {
    for (int64_t head = 0; head < rotated; head += rope.head_dim) {
      for (int64_t i = 0; i < half; ++i) {
        const T cosine = table.at(t, i);
        const T sine = rope.inverse ? -table.at(t, half + i) : table.at(t, half + i);
        const int64_t first = head + (rope.interleaved ? 2 * i : i);
        const int64_t second = rope.interleaved ? first + 1 : first + half;
        const T low = x.at(t, first);
        const T high = x.at(t, second);
        y.set(t, first, low * cosine - high * sine);
        y.set(t, second, high * cosine + low * sine);
      }
      for (int64_t j = head + width; j < head + rope.head_dim; ++j) y.set(t, j, x.at(t, j));
    }
    for (int64_t j = rotated; j < x.columns(); ++j) y.set(t, j, x.at(t, j));
  }
}

}  // namespace

SNUG_REFERENCE_KIND(RotaryTable);
SNUG_REFERENCE_KIND(Rope);

}  // namespace snug::backends::reference
