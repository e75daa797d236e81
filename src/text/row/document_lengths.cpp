#include "text/row/document_lengths.h"

#include <algorithm>
#include <limits>

namespace snug::text {

using base::PerStream;
using base::TokenStream;

void DocumentLengths::add(const PerStream<int32_t>& tokens) {
  if (size_ == 0) {
    counts_ = tokens.map([](int32_t) { return Counts(); });
    longest_ = tokens;
  }
  for (const TokenStream stream : tokens.streams()) {
    ++counts_[stream][tokens[stream]];
    longest_[stream] = std::max(longest_[stream], tokens[stream]);
  }
  // Of one stream these are its counts.
  if (tokens.has_encoder()) ++by_longest_part_[std::ranges::max(tokens)];
  ++size_;
}

int32_t DocumentLengths::most_in(const PerStream<int64_t>& tokens, int64_t times) const {
  int32_t most = std::numeric_limits<int32_t>::max();
  for (const TokenStream stream : counts_.streams())
    most = std::min(most, most_of(counts_[stream], tokens[stream], times));
  return most;
}

int32_t DocumentLengths::most_of(const Counts& counts, int64_t tokens, int64_t times) {
  int32_t most = 0;
  for (const auto& [length, count] : counts) {
    const auto fit = static_cast<int32_t>(std::min<int64_t>(count * times, tokens / length));
    most += fit;
    tokens -= int64_t{fit} * length;
    if (fit < count * times) break;
  }
  return most;
}

int64_t DocumentLengths::longer_than(int64_t tokens) const {
  int64_t longer = 0;
  const Counts& counts = counts_.has_encoder() ? by_longest_part_ : counts_.decoder();
  for (const auto& [length, count] : counts)
    if (length > tokens) longer += count;
  return longer;
}

}  // namespace snug::text
