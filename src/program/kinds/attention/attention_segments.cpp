#include "program/kinds/attention/attention_segments.h"

#include <algorithm>

namespace snug::program {
namespace {

// The sum of min(v, cap) over `count` consecutive numbers v, starting with `first`.
double capped_sum(double first, double count, double cap) {
  const double below = std::clamp(cap - first + 1, 0.0, count);
  return below * first + below * (below - 1) / 2 + (count - below) * cap;
}

// The number of unmasked query-key pairs of one segment. Query i of n (from 0) sees the keys up to
// i + keys - n, or all keys; a window keeps the last `window` of those up to its diagonal.
double visible_pairs(const KeyMask& mask, const AttentionSegments& segments) {
  const double keys = segments.keys;
  const double n = mask.causal ? std::min(segments.queries, keys) : segments.queries;
  const auto width = static_cast<double>(mask.window);
  if (mask.causal) return capped_sum(keys - n + 1, n, mask.window > 0 ? width : keys);
  if (mask.window == 0) return n * keys;
  return capped_sum(width, n, keys);
}

// The number of keys of one segment that at least one query sees.
double visible_keys(const KeyMask& mask, const AttentionSegments& segments) {
  if (segments.queries == 0) return 0;
  if (!mask.causal || mask.window == 0) return segments.keys;
  return std::min(segments.keys, segments.queries + static_cast<double>(mask.window) - 1);
}

}  // namespace

Extent extent_of_segments(const KeyMask& mask, const AttentionSegments& segments) {
  return {.rows = segments.count * segments.queries,
          .keys = segments.count * visible_keys(mask, segments),
          .pairs = segments.count * visible_pairs(mask, segments),
          .mean_segment_tokens = segments.keys};
}

AttentionSegments expected_segments(const ExpectedAttention& expected) {
  const auto q_tokens = static_cast<double>(expected.q_tokens);
  const auto k_tokens = static_cast<double>(expected.k_tokens);
  const double mean = expected.mean_keys;
  if (q_tokens == 0) return {};
  if (!expected.paged && q_tokens == k_tokens) {
    double length = mean > 0 ? mean : static_cast<double>(expected.segment_tokens);
    if (length <= 0) length = q_tokens;
    length = std::min(length, q_tokens);
    return {q_tokens / length, length, length};
  }
  if (!expected.paged && crosses_streams(expected.causal, expected.q_tokens, expected.segments)) {
    const double keys = mean > 0 ? std::min(mean, k_tokens) : k_tokens;
    const double count = keys > 0 ? k_tokens / keys : 1;
    return {count, q_tokens / count, keys};
  }
  const double count = std::max(1.0, static_cast<double>(expected.segments));
  const double queries = q_tokens / count;
  const double capacity = k_tokens / count;
  const double keys = mean > 0 ? std::min(mean, capacity) : capacity;
  return {count, queries, std::max(keys, std::min(queries, capacity))};
}

void SegmentSum::add(const AttentionSegments& segments) {
  const Extent more = extent_of_segments(mask_, segments);
  sum_.rows += more.rows;
  sum_.keys += more.keys;
  sum_.pairs += more.pairs;
  sum_.mean_segment_tokens += more.rows * segments.keys;
}

Extent SegmentSum::extent() const {
  Extent all = sum_;
  all.mean_segment_tokens /= std::max(1.0, all.rows);
  return all;
}

}  // namespace snug::program
