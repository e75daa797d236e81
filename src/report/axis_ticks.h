// Where the marks of an axis stand: at round numbers (1, 2 or 5 times a power of ten). Pure.
#pragma once

#include <vector>

namespace snug::report {

// Between `first` and `last`, both included, about five marks and at most nine, in ascending order.
// `whole`: at whole numbers only, as for steps. Where no round number lies in between, `first`.
std::vector<double> axis_ticks(double first, double last, bool whole);

}  // namespace snug::report
