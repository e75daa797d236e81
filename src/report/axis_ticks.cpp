#include "report/axis_ticks.h"

#include <algorithm>
#include <cmath>

namespace snug::report {
namespace {

constexpr double kWantedGaps = 6;

// The least of 1, 2 and 5 times a power of ten that is not below `gap`.
double round_gap(double gap) {
  const double power = std::pow(10.0, std::floor(std::log10(gap)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= gap * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace

std::vector<double> axis_ticks(double first, double last, bool whole) {
  // Of numbers that differ by their rounding alone, steps would be too small to be counted.
  constexpr double kLeastShare = 1e-12;
  const double size = std::max(std::abs(first), std::abs(last));
  if (!(last - first > kLeastShare * size)) return {first};
  double gap = round_gap((last - first) / kWantedGaps);
  if (whole) gap = std::max(1.0, gap);
  const double slack = 1e-9 * gap;
  std::vector<double> ticks;
  // Counted in gaps, so that no rounding error adds up; zero is zero and not -0.
  for (double count = std::ceil((first - slack) / gap); count * gap <= last + slack; ++count)
    ticks.push_back(count * gap + 0.0);
  if (ticks.empty()) ticks.push_back(first);
  return ticks;
}

}  // namespace snug::report
