#include "text/row_source.h"

#include <algorithm>

#include "base/error.h"

namespace snug::text {
namespace {

// Rows are counted exactly in a double, too.
constexpr int64_t kMaxRows = int64_t{1} << 53;

}  // namespace

RowSource::RowSource(const DocumentStore& documents, const RowOptions& options)
    : documents_(documents),
      options_(options),
      orders_{EpochOrder(documents, options), EpochOrder(documents, options)} {
  SNUG_CHECK(documents.size() > 0, "no documents");
  marks_.reserve(kMarks);
  marks_.push_back(0);
}

void RowSource::set_rows(int32_t max_length, int32_t max_segments) {
  options_.max_length = max_length;
  options_.max_segments = max_segments;
  for (EpochOrder& order : orders_) order.set_rows(max_length, max_segments);
  begins_ = {};
  first_rows_ = 0;
  marks_.assign(1, 0);
  stride_ = 1;
}

const EpochOrder& RowSource::order_of(const Start& start) {
  EpochOrder& order = orders_[start.epoch % 2];
  if (order.epoch() != start.epoch) order.make(start.epoch);
  begins_[start.epoch % 2] = start.row;
  if (start.epoch == 0) first_rows_ = order.rows();
  return order;
}

int64_t RowSource::rows_of_each() {
  if (!options_.packing || options_.max_segments < 2 * options_.group)
    return documents_.size() / options_.group;
  if (documents_.tokens() <= options_.max_length && documents_.size() <= options_.max_segments)
    return 1;
  if (options_.shuffle) return 0;
  return first_rows_ > 0 ? first_rows_ : order_of({}).rows();
}

template <typename IsBefore>
RowSource::Start RowSource::known_start(const IsBefore& is_before) const {
  // Marks ascend in both, and the first one is before everything.
  size_t low = 0;
  for (size_t high = marks_.size(); high - low > 1;) {
    const size_t middle = low + (high - low) / 2;
    const Start start{static_cast<int64_t>(middle) * stride_, marks_[middle]};
    (is_before(start) ? low : high) = middle;
  }
  Start best{static_cast<int64_t>(low) * stride_, marks_[low]};
  for (size_t i = 0; i < orders_.size(); ++i) {
    const Start start{orders_[i].epoch(), begins_[i]};
    if (start.epoch > best.epoch && is_before(start)) best = start;
  }
  return best;
}

RowSource::Start RowSource::next(const Start& start) {
  const Start after{start.epoch + 1, start.row + order_of(start).rows()};
  remember(after);
  return after;
}

// When there is no room for another mark, every second one goes.
void RowSource::remember(const Start& start) {
  if (start.epoch != static_cast<int64_t>(marks_.size()) * stride_) return;
  if (marks_.size() == kMarks) {
    for (size_t i = 1; i < kMarks / 2; ++i) marks_[i] = marks_[2 * i];
    marks_.resize(kMarks / 2);
    stride_ *= 2;
  }
  if (start.epoch == static_cast<int64_t>(marks_.size()) * stride_) marks_.push_back(start.row);
}

int64_t RowSource::most_epochs() {
  const int64_t rows = rows_of_each();
  return rows > 0 ? kMaxRows / rows : kMaxPacked / documents_.size();
}

void RowSource::check_distance(int64_t epochs) const {
  if (epochs > kMaxPacked / documents_.size())
    base::throw_user_error(
        "the rows of {} epochs of {} documents cannot be counted; at most {} epochs can", epochs,
        documents_.size(), kMaxPacked / documents_.size());
}

int64_t RowSource::rows_until(int64_t epochs) {
  SNUG_CHECK(epochs >= 0, "{} epochs", epochs);
  if (epochs == 1 && first_rows_ > 0) return first_rows_;
  if (const int64_t rows = rows_of_each(); rows > 0) {
    if (epochs > kMaxRows / rows)
      base::throw_user_error("{} epochs of {} rows cannot be counted", epochs, rows);
    return epochs * rows;
  }
  Start start = known_start([&](const Start& known) { return known.epoch <= epochs; });
  check_distance(epochs - start.epoch);
  while (start.epoch < epochs) start = next(start);
  return start.row;
}

RowSource::Start RowSource::start_of(int64_t row) {
  SNUG_CHECK(row >= 0, "row {}", row);
  if (const int64_t rows = rows_of_each(); rows > 0) return {row / rows, row - row % rows};
  Start start = known_start([&](const Start& known) { return known.row <= row; });
  check_distance((row - start.row) / rows_until(1));
  while (row >= start.row + order_of(start).rows()) start = next(start);
  return start;
}

int64_t RowSource::epoch_of(int64_t row) { return start_of(row).epoch; }

RowSource::Place RowSource::place_of(int64_t row) {
  const Start start = start_of(row);
  return {&order_of(start), row - start.row};
}

RowCounts RowSource::counts(int64_t row) {
  const Place place = place_of(row);
  RowCounts counts;
  for (int32_t i = place.order->first(place.row); i < place.order->end(place.row); ++i) {
    const int32_t document = place.order->document(i);
    ++counts.segments;
    counts.tokens += documents_.length(document);
    counts.targets += documents_.targets(document);
    if (i % options_.group == 0) counts.leading += documents_.targets(document);
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
  const bool has_positions = !buffers.positions.empty();
  if (has_positions)
    SNUG_CHECK_EQ(buffers.positions.size(), static_cast<size_t>(options_.max_length));
  SNUG_CHECK_EQ(buffers.segments.size(), static_cast<size_t>(options_.max_segments));
  const Place place = place_of(row);
  RowCounts counts;
  for (int32_t at = place.order->first(place.row); at < place.order->end(place.row); ++at) {
    const int32_t document = place.order->document(at);
    const int32_t length = documents_.length(document);
    const int32_t begin = counts.tokens;
    const std::span<int32_t> words = buffers.ids.subspan(begin, length);
    documents_.read(document, words);
    for (int32_t i = 0; i < length; ++i) {
      const bool predicts = i + 1 < length && DocumentStore::is_target(words[i + 1]);
      words[i] = DocumentStore::id_of(words[i]);
      buffers.targets[begin + i] = predicts ? DocumentStore::id_of(words[i + 1]) : -1;
      if (has_positions) buffers.positions[begin + i] = i;
    }
    if (!buffers.documents.empty()) buffers.documents[counts.segments] = document;
    buffers.segments[counts.segments++] = {begin, begin + length};
    counts.tokens += length;
    counts.targets += documents_.targets(document);
    if (at % options_.group == 0) counts.leading += documents_.targets(document);
  }
  std::fill(buffers.ids.begin() + counts.tokens, buffers.ids.end(), options_.padding_id);
  std::fill(buffers.targets.begin() + counts.tokens, buffers.targets.end(), -1);
  if (has_positions)
    std::fill(buffers.positions.begin() + counts.tokens, buffers.positions.end(), 0);
  std::fill(buffers.segments.begin() + counts.segments, buffers.segments.end(),
            Segment{options_.max_length, options_.max_length});
  if (!buffers.documents.empty())
    std::fill(buffers.documents.begin() + counts.segments, buffers.documents.end(), -1);
  return counts;
}

int64_t RowSource::host_bytes() const {
  return orders_[0].host_bytes() + orders_[1].host_bytes() +
         static_cast<int64_t>(marks_.capacity() * sizeof(int64_t));
}

}  // namespace snug::text
