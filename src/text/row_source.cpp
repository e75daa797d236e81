#include "text/row_source.h"

#include <algorithm>

#include "base/error.h"

namespace snug::text {

RowSource::RowSource(const DocumentStore& documents, const RowOptions& options)
    : documents_(documents),
      options_(options),
      orders_{RowOrder(documents, options), RowOrder(documents, options)} {
  SNUG_CHECK(documents.size() > 0, "no documents");
  epoch_begin_.reserve(kEpochs + 1);
  epoch_begin_.push_back(0);
}

const RowOrder& RowSource::order_of(int64_t epoch) {
  RowOrder& order = orders_[epoch % 2];
  if (order.epoch() != epoch) order.make(epoch);
  return order;
}

int64_t RowSource::rows_until(int64_t epochs) {
  while (static_cast<int64_t>(epoch_begin_.size()) <= epochs) {
    const auto epoch = static_cast<int64_t>(epoch_begin_.size()) - 1;
    epoch_begin_.push_back(epoch_begin_.back() + order_of(epoch).rows());
  }
  return epoch_begin_[epochs];
}

int64_t RowSource::epoch_of(int64_t row) {
  SNUG_CHECK(row >= 0, "row {}", row);
  while (epoch_begin_.back() <= row) rows_until(static_cast<int64_t>(epoch_begin_.size()));
  const auto after = std::upper_bound(epoch_begin_.begin(), epoch_begin_.end(), row);
  return after - epoch_begin_.begin() - 1;
}

RowSource::Place RowSource::place_of(int64_t row) {
  const int64_t epoch = epoch_of(row);
  return {&order_of(epoch), row - epoch_begin_[epoch]};
}

RowCounts RowSource::counts(int64_t row) {
  const Place place = place_of(row);
  RowCounts counts;
  for (int32_t i = place.order->first(place.row); i < place.order->end(place.row); ++i) {
    const int32_t document = place.order->document(i);
    ++counts.segments;
    counts.tokens += documents_.length(document);
    counts.targets += documents_.targets(document);
  }
  return counts;
}

int64_t RowSource::trained_tokens(int64_t first, int64_t count) {
  int64_t total = 0;
  for (int64_t row = first; row < first + count; ++row) total += counts(row).targets;
  return total;
}

RowCounts RowSource::fill(int64_t row, const RowBuffers& buffers) {
  SNUG_CHECK_EQ(buffers.ids.size(), static_cast<size_t>(options_.max_length));
  SNUG_CHECK_EQ(buffers.targets.size(), static_cast<size_t>(options_.max_length));
  SNUG_CHECK_EQ(buffers.positions.size(), static_cast<size_t>(options_.max_length));
  SNUG_CHECK_EQ(buffers.segments.size(), static_cast<size_t>(options_.max_segments));
  const Place place = place_of(row);
  RowCounts counts;
  for (int32_t at = place.order->first(place.row); at < place.order->end(place.row); ++at) {
    const int32_t document = place.order->document(at);
    const int32_t length = documents_.length(document);
    const int32_t begin = counts.tokens;
    for (int32_t i = 0; i < length; ++i) {
      const bool predicts = i + 1 < length && documents_.is_target(document, i + 1);
      buffers.ids[begin + i] = documents_.id(document, i);
      buffers.targets[begin + i] = predicts ? documents_.id(document, i + 1) : -1;
      buffers.positions[begin + i] = i;
    }
    buffers.segments[counts.segments++] = {begin, begin + length};
    counts.tokens += length;
    counts.targets += documents_.targets(document);
  }
  std::fill(buffers.ids.begin() + counts.tokens, buffers.ids.end(), options_.padding_id);
  std::fill(buffers.targets.begin() + counts.tokens, buffers.targets.end(), -1);
  std::fill(buffers.positions.begin() + counts.tokens, buffers.positions.end(), 0);
  std::fill(buffers.segments.begin() + counts.segments, buffers.segments.end(),
            Segment{options_.max_length, options_.max_length});
  return counts;
}

int64_t RowSource::host_bytes() const {
  return orders_[0].host_bytes() + orders_[1].host_bytes() +
         static_cast<int64_t>(epoch_begin_.capacity() * sizeof(int64_t));
}

}  // namespace snug::text
