// The median of several measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace snug::base {

// The upper of the two middle values when their number is even; 0 when there is none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace snug::base
