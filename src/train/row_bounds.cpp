#include "train/row_bounds.h"

#include <algorithm>
#include <vector>

namespace snug::train {
namespace {

// More rows change a mean of them by less than a step varies.
constexpr int64_t kRows = 256;

}  // namespace

program::ExpectedBounds expected_bounds(text::RowSource& rows) {
  const text::RowOptions& options = rows.options();
  const auto length = static_cast<size_t>(options.max_length);
  std::vector<int32_t> ids(length);
  std::vector<int32_t> targets(length);
  std::vector<int32_t> positions(length);
  std::vector<text::Segment> segments(static_cast<size_t>(options.max_segments));
  // As the program's tensor has them.
  const std::span<const int32_t> bounds(reinterpret_cast<const int32_t*>(segments.data()),
                                        2 * segments.size());
  const int64_t count = std::min(kRows, rows.rows_until(1));
  program::MeanBounds means;
  for (int64_t row = 0; row < count; ++row) {
    rows.fill(row, {ids, targets, positions, segments});
    means.add_row(targets, bounds);
  }
  return means.expected();
}

}  // namespace snug::train
