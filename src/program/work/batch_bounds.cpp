#include "program/work/batch_bounds.h"

#include <algorithm>

namespace snug::program {

ExpectedBounds full_rows(const base::PerStream<int64_t>& segment_tokens) {
  const auto as_double = [](int64_t tokens) { return static_cast<double>(tokens); };
  return {.mean_segment_tokens = segment_tokens.map(as_double), .trained_fraction = 1.0};
}

int64_t rows_with_work(std::span<const int32_t> entries) {
  return std::ranges::count_if(entries, [](int32_t entry) { return entry >= 0; });
}

int64_t tokens_of_segment(std::span<const int32_t> bounds, int64_t segment) {
  const auto at = static_cast<size_t>(2 * segment);
  return std::max<int64_t>(0, int64_t{bounds[at + 1]} - bounds[at]);
}

void MeanBounds::add_row(std::span<const int32_t> targets,
                         const base::PerStream<StreamRow>& streams) {
  trained_ += static_cast<double>(rows_with_work(targets));
  if (streams.has_encoder() && !tokens_.has_encoder()) tokens_ = squares_ = {0, 0};
  for (const base::TokenStream stream : streams.streams()) {
    const StreamRow& row = streams[stream];
    tokens_[stream] += static_cast<double>(row.tokens);
    for (int64_t i = 0; i < segment_count(row.query_bounds); ++i) {
      const auto tokens = static_cast<double>(tokens_of_segment(row.query_bounds, i));
      squares_[stream] += tokens * tokens;
    }
  }
}

ExpectedBounds MeanBounds::expected() const {
  if (tokens_.decoder() == 0) return {};
  base::PerStream<double> means = squares_;
  for (const base::TokenStream stream : means.streams())
    means[stream] = std::max(1.0, means[stream] / tokens_[stream]);
  return {.mean_segment_tokens = means, .trained_fraction = trained_ / tokens_.decoder()};
}

std::span<const int32_t> BatchBounds::operator[](TensorId tensor) const {
  const auto found = values_.find(tensor);
  return found == values_.end() ? std::span<const int32_t>() : found->second;
}

}  // namespace snug::program
