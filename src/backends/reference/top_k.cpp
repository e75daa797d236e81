#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/expert/top_k.h"

namespace snug::backends::reference {
namespace {

using program::TopK;

template <typename T>
void run(const TopK& top, const Invocation& invocation) {
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  const Floats<T> x(invocation[TopK::kX]);
  const Floats<T> values(invocation[TopK::kValues]);
  auto* ids = invocation[TopK::kIds].as<int32_t>();
  for (int64_t row = 0; row < x.rows(); ++row) {
    std::vector<int32_t> columns;
    for (int64_t column = 0; column < x.columns(); ++column)
      if (x.at(row, column) > kNone) columns.push_back(static_cast<int32_t>(column));
    std::ranges::stable_sort(columns,
                             [&](int32_t a, int32_t b) { return x.at(row, a) > x.at(row, b); });
    columns.resize(static_cast<size_t>(top.k), -1);
    for (int64_t i = 0; i < top.k; ++i) {
      const int32_t column = columns[static_cast<size_t>(i)];
      values.set(row, i, column < 0 ? kNone : x.at(row, column));
      ids[row * top.k + i] = column;
    }
  }
}

}  // namespace

SNUG_REFERENCE_KIND(TopK);

}  // namespace snug::backends::reference
