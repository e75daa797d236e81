#include "program/batch_bounds.h"

#include <algorithm>

namespace snug::program {

ExpectedBounds full_rows(int64_t segment_tokens) {
  return {.mean_segment_tokens = static_cast<double>(segment_tokens), .trained_fraction = 1.0};
}

int64_t rows_with_work(std::span<const int32_t> entries) {
  return std::ranges::count_if(entries, [](int32_t entry) { return entry >= 0; });
}

int64_t tokens_of_segment(std::span<const int32_t> bounds, int64_t segment) {
  const auto at = static_cast<size_t>(2 * segment);
  return std::max<int64_t>(0, int64_t{bounds[at + 1]} - bounds[at]);
}

void MeanBounds::add_row(std::span<const int32_t> targets, std::span<const int32_t> query_bounds) {
  tokens_ += static_cast<double>(targets.size());
  trained_ += static_cast<double>(rows_with_work(targets));
  for (int64_t i = 0; i < segment_count(query_bounds); ++i) {
    const auto tokens = static_cast<double>(tokens_of_segment(query_bounds, i));
    squares_ += tokens * tokens;
  }
}

ExpectedBounds MeanBounds::expected() const {
  if (tokens_ == 0) return {};
  return {.mean_segment_tokens = std::max(1.0, squares_ / tokens_),
          .trained_fraction = trained_ / tokens_};
}

std::span<const int32_t> BatchBounds::operator[](TensorId tensor) const {
  const auto found = values_.find(tensor);
  return found == values_.end() ? std::span<const int32_t>() : found->second;
}

}  // namespace snug::program
