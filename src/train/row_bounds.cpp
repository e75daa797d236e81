#include "train/row_bounds.h"

#include <algorithm>
#include <vector>

namespace snug::train {
namespace {

// More rows change a mean of them by less than a step varies.
constexpr int64_t kRows = 256;

// Where a stream of a row is written.
struct StreamMemory {
  std::vector<int32_t> ids;
  std::vector<text::Segment> segments;

  text::StreamBuffers buffers() { return {ids, {}, segments}; }
  // Bounds as the program's tensor has them.
  program::MeanBounds::StreamRow row() const {
    return {static_cast<int64_t>(ids.size()),
            {reinterpret_cast<const int32_t*>(segments.data()), 2 * segments.size()}};
  }
};

}  // namespace

program::ExpectedBounds expected_bounds(text::RowSource& rows) {
  const text::RowOptions& options = rows.options();
  base::PerStream<StreamMemory> streams = options.max_length.map([&](int32_t tokens) {
    return StreamMemory{std::vector<int32_t>(static_cast<size_t>(tokens)),
                        std::vector<text::Segment>(static_cast<size_t>(options.max_segments))};
  });
  std::vector<int32_t> targets(streams.decoder().ids.size());
  const text::RowBuffers buffers{options.max_length.each([&](base::TokenStream stream, int32_t) {
                                   return streams[stream].buffers();
                                 }),
                                 targets};
  const int64_t count = std::min(kRows, rows.rows_until(1));
  program::MeanBounds means;
  for (int64_t row = 0; row < count; ++row) {
    rows.fill(row, buffers);
    means.add_row(targets, streams.map([](const StreamMemory& of) { return of.row(); }));
  }
  return means.expected();
}

}  // namespace snug::train
