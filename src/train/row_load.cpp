#include "train/row_load.h"

#include <algorithm>
#include <vector>

namespace snug::train {
namespace {

// More rows change a mean of them by less than a step varies.
constexpr int64_t kRows = 256;

}  // namespace

program::Load load_of(text::RowSource& rows) {
  const text::RowOptions& options = rows.options();
  const auto length = static_cast<size_t>(options.max_length);
  std::vector<int32_t> ids(length);
  std::vector<int32_t> targets(length);
  std::vector<int32_t> positions(length);
  std::vector<text::Segment> segments(static_cast<size_t>(options.max_segments));
  const int64_t count = std::min(kRows, rows.rows_until(1));
  double squares = 0;
  double trained = 0;
  for (int64_t row = 0; row < count; ++row) {
    const text::RowCounts counts = rows.fill(row, {ids, targets, positions, segments});
    trained += counts.targets;
    for (const text::Segment& segment : segments) {
      const double tokens = segment.end - segment.begin;
      squares += tokens * tokens;
    }
  }
  const double capacity =
      static_cast<double>(std::max<int64_t>(1, count)) * static_cast<double>(options.max_length);
  return {.segment_tokens = std::max(1.0, squares / capacity),
          .trained_fraction = trained / capacity,
          .row_tokens = options.max_length};
}

}  // namespace snug::train
