#include "text/row/row_source.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace snug::text {
namespace {

// Up to here, row numbers are also exact as doubles.
constexpr int64_t kMaxRows = int64_t{1} << 53;

}  // namespace

RowSource::RowSource(const DocumentStore& documents, const RowOptions& options)
    : documents_(documents),
      options_(options),
      orders_{EpochOrder(documents, options), EpochOrder(documents, options)} {
  SNUG_CHECK(orders_[0].groups() > 0, "no documents");
  if (orders_[0].takes_each_once()) options_.parts.clear();
  marks_.reserve(kMarks);
  marks_.push_back(0);
}

void RowSource::set_rows(const PerStream<int32_t>& max_length, int32_t max_segments) {
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

int64_t RowSource::most_epoch_tokens(TokenStream stream) const {
  return options_.parts.empty() ? documents_.tokens(stream)
                                : epoch_documents() * documents_.longest()[stream];
}

bool RowSource::all_fit_one_row() const {
  const auto fits = [&](TokenStream stream) {
    return most_epoch_tokens(stream) <= options_.max_length[stream];
  };
  return epoch_documents() <= options_.max_segments &&
         std::ranges::all_of(documents_.streams(), fits);
}

int64_t RowSource::rows_of_each() {
  if (!options_.packing || options_.max_segments < 2 * options_.group) return orders_[0].groups();
  if (all_fit_one_row()) return 1;
  if (options_.shuffle || !orders_[0].takes_alike()) return 0;
  return first_rows_ > 0 ? first_rows_ : order_of({}).rows();
}

template <typename IsBefore>
RowSource::Start RowSource::known_start(const IsBefore& is_before) const {
  // A binary search: epochs and rows ascend along the marks, and the first mark is before all
  // others.
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

// If there is no room for another mark, every second one is removed.
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
  return rows > 0 ? kMaxRows / rows : kMaxPacked / epoch_documents();
}

void RowSource::check_distance(int64_t epochs) const {
  if (epochs > kMaxPacked / epoch_documents())
    base::throw_user_error(
        "the rows of {} epochs of {} documents cannot be counted; at most {} epochs can", epochs,
        epoch_documents(), kMaxPacked / epoch_documents());
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

int64_t RowSource::first_epoch_tokens() {
  if (options_.parts.empty()) return documents_.tokens();
  const EpochOrder& order = order_of({});
  int64_t tokens = 0;
  for (int32_t at = 0; at < epoch_documents(); ++at)
    for (const TokenStream stream : documents_.streams())
      tokens += documents_.length(order.document(at), stream);
  return tokens;
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

RowCounts RowSource::no_counts() const {
  return {.tokens = documents_.longest().map([](int32_t) { return int32_t{0}; })};
}

void RowSource::count(int32_t document, int32_t at, RowCounts& counts) const {
  ++counts.segments;
  counts.targets += documents_.targets(document);
  if (at % options_.group != 0) return;
  counts.leading += documents_.targets(document);
  if (documents_.label(document) > 0) ++counts.desirable;
}

RowCounts RowSource::counts(int64_t row) {
  const Place place = place_of(row);
  RowCounts counts = no_counts();
  for (int32_t i = place.order->first(place.row); i < place.order->end(place.row); ++i) {
    const int32_t document = place.order->document(i);
    for (const TokenStream stream : documents_.streams())
      counts.tokens[stream] += documents_.length(document, stream);
    count(document, i, counts);
  }
  return counts;
}

int64_t RowSource::trained_tokens(int64_t first, int64_t count) {
  int64_t total = 0;
  for (int64_t row = first; row < first + count; ++row) total += counts(row).targets;
  return total;
}

void RowSource::check_sizes(const RowBuffers& buffers) const {
  for (const TokenStream stream : documents_.streams()) {
    const StreamBuffers& of_stream = buffers.streams[stream];
    const auto length = static_cast<size_t>(options_.max_length[stream]);
    SNUG_CHECK_EQ(of_stream.ids.size(), length);
    if (!of_stream.positions.empty()) SNUG_CHECK_EQ(of_stream.positions.size(), length);
    SNUG_CHECK_EQ(of_stream.segments.size(), static_cast<size_t>(options_.max_segments));
  }
  SNUG_CHECK_EQ(buffers.targets.size(), static_cast<size_t>(options_.max_length.decoder()));
}

// Shifts targets by one place, since a token is predicted at the place before it. With an encoder,
// the decoder also predicts a document's first token, from the start token.
void RowSource::split_targets(std::span<int32_t> words, std::span<int32_t> targets) const {
  std::ranges::transform(words, targets.begin(), [](int32_t word) {
    return DocumentStore::is_target(word) ? DocumentStore::id_of(word) : -1;
  });
  std::ranges::transform(words, words.begin(), DocumentStore::id_of);
  if (documents_.has_encoder()) {
    std::shift_right(words.begin(), words.end(), 1);
    words.front() = options_.start_id;
  } else {
    std::shift_left(targets.begin(), targets.end(), 1);
    targets.back() = -1;
  }
}

void RowSource::fill_part(int32_t document, TokenStream stream, const RowBuffers& buffers,
                          RowCounts& counts) const {
  const StreamBuffers& to = buffers.streams[stream];
  const int32_t begin = counts.tokens[stream];
  const int32_t length = documents_.length(document, stream);
  const std::span<int32_t> words = to.ids.subspan(begin, length);
  documents_.read(document, words, stream);
  if (stream == TokenStream::decoder) split_targets(words, buffers.targets.subspan(begin, length));
  if (!to.positions.empty()) {
    const std::span<int32_t> positions = to.positions.subspan(begin, length);
    std::iota(positions.begin(), positions.end(), 0);
  }
  to.segments[counts.segments] = {begin, begin + length};
  counts.tokens[stream] += length;
}

void RowSource::fill_tails(const RowBuffers& buffers, const RowCounts& counts) const {
  for (const TokenStream stream : documents_.streams()) {
    const StreamBuffers& to = buffers.streams[stream];
    const int32_t length = options_.max_length[stream];
    const int32_t tokens = counts.tokens[stream];
    std::ranges::fill(to.ids.subspan(tokens), options_.padding_id);
    if (!to.positions.empty()) std::ranges::fill(to.positions.subspan(tokens), 0);
    std::ranges::fill(to.segments.subspan(counts.segments), Segment{length, length});
  }
  std::ranges::fill(buffers.targets.subspan(counts.tokens.decoder()), -1);
  if (!buffers.documents.empty()) std::ranges::fill(buffers.documents.subspan(counts.segments), -1);
}

RowCounts RowSource::fill(int64_t row, const RowBuffers& buffers) {
  check_sizes(buffers);
  const Place place = place_of(row);
  RowCounts counts = no_counts();
  for (int32_t at = place.order->first(place.row); at < place.order->end(place.row); ++at) {
    const int32_t document = place.order->document(at);
    for (const TokenStream stream : documents_.streams())
      fill_part(document, stream, buffers, counts);
    if (!buffers.documents.empty()) buffers.documents[counts.segments] = document;
    count(document, at, counts);
  }
  fill_tails(buffers, counts);
  return counts;
}

int64_t RowSource::host_bytes() const {
  return orders_[0].host_bytes() + orders_[1].host_bytes() +
         static_cast<int64_t>(marks_.capacity() * sizeof(int64_t) +
                              options_.parts.capacity() * sizeof(EpochPart));
}

}  // namespace snug::text
