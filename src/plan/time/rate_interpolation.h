// Interpolation between samples. The nearest of them, in a space of logarithms, weighted by the
// inverse square of their distance, carry a plane through their logarithms of the rate. A plane,
// because rates of small shapes follow powers of them (a product with a LoRA factor of twice the
// rank is twice as fast per FLOP); it is held flat where the samples do not tell a direction, and
// within the range of the samples it came from. What it does not do: see that two kinds disturb
// each other.
//
// Pure functions.
#pragma once

#include <vector>

namespace snug::plan {

// A sample as interpolation takes it.
struct RatePoint {
  std::vector<double> position;  // logarithms to base 2 of the shape
  double log_rate = 0;           // of work per second, to base 2
  double seconds = 0;
  double work = 0;
};

// Logarithms to base 2.
std::vector<double> logarithms(const std::vector<double>& shape);

// The sample of this very shape, or nullptr.
const RatePoint* find_same_shape(const std::vector<RatePoint>& points,
                                 const std::vector<double>& at);

struct InterpolatedRate {
  double log_rate = 0;
  double nearest_distance = 0;  // in doublings, to the nearest sample
};
// Requires a sample.
InterpolatedRate interpolate(const std::vector<RatePoint>& points, const std::vector<double>& at);

}  // namespace snug::plan
