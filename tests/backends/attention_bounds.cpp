#include "attention_bounds.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace snug::backends::test {

Bounds whole(int64_t tokens) {
  const auto end = static_cast<double>(tokens);
  return {fmt::format("one segment of {}", tokens), tokens, tokens, {0, end}, {0, end}};
}

Bounds chunk(int64_t queries, int64_t past, int64_t capacity) {
  return {fmt::format("{} queries after {} keys of {}", queries, past, capacity),
          queries,
          capacity,
          {0, static_cast<double>(queries)},
          {0, static_cast<double>(past + queries)}};
}

Bounds rows_of(const std::vector<int64_t>& lengths) {
  Bounds bounds{fmt::format("segments of {}", fmt::join(lengths, ", ")), 0, 0, {}, {}};
  for (const int64_t length : lengths) {
    bounds.queries.push_back(static_cast<double>(bounds.q_tokens));
    bounds.q_tokens += length;
    bounds.queries.push_back(static_cast<double>(bounds.q_tokens));
  }
  bounds.k_tokens = bounds.q_tokens;
  bounds.keys = bounds.queries;
  return bounds;
}

Bounds packed(Random& random, int64_t tokens) {
  Bounds bounds{fmt::format("segments in {}", tokens), tokens, tokens, {}, {}};
  std::uniform_int_distribution<int64_t> length(1, std::max<int64_t>(2, tokens / 3));
  std::uniform_int_distribution<int64_t> gap(0, 2);
  int64_t begin = gap(random);
  while (begin < tokens - 1) {
    const int64_t end = std::min(tokens, begin + length(random));
    bounds.queries.push_back(static_cast<double>(begin));
    bounds.queries.push_back(static_cast<double>(end));
    begin = end + gap(random);
  }
  bounds.queries.insert(bounds.queries.end(), {0, 0, 0, 0});
  bounds.keys = bounds.queries;
  return bounds;
}

Bounds crossed(const std::vector<int64_t>& queries, const std::vector<int64_t>& keys) {
  Bounds bounds{
      fmt::format("{} queries on {} keys", fmt::join(queries, ", "), fmt::join(keys, ", ")),
      0,
      0,
      {},
      {}};
  const auto append = [](Values& all, int64_t& tokens, int64_t length) {
    all.push_back(static_cast<double>(tokens));
    all.push_back(static_cast<double>(tokens + length));
    tokens += length + 1;
  };
  for (size_t s = 0; s < queries.size(); ++s) {
    append(bounds.queries, bounds.q_tokens, queries[s]);
    append(bounds.keys, bounds.k_tokens, keys[s]);
  }
  for (Values* all : {&bounds.queries, &bounds.keys}) all->insert(all->end(), {0, 0});
  return bounds;
}

Bounds decode(Random& random, int64_t sequences, int64_t capacity, bool idle) {
  Bounds bounds{fmt::format("{} sequences of {}{}", sequences, capacity, idle ? ", some idle" : ""),
                sequences,
                sequences * capacity,
                {},
                {}};
  std::uniform_int_distribution<int64_t> length(2, capacity);
  for (int64_t s = 0; s < sequences; ++s) {
    const bool has_query = !idle || s % 3 != 1;
    const int64_t begin = s * capacity;
    const int64_t end = begin + length(random);
    for (const int64_t bound : {s, s + 1}) bounds.queries.push_back(double(has_query ? bound : 0));
    for (const int64_t bound : {begin, end}) bounds.keys.push_back(double(has_query ? bound : 0));
  }
  return bounds;
}

int64_t longest_of(const Bounds& bounds) {
  double longest = 0;
  for (size_t s = 0; s < bounds.queries.size(); s += 2)
    longest = std::max(longest, bounds.queries[s + 1] - bounds.queries[s]);
  return static_cast<int64_t>(longest);
}

}  // namespace snug::backends::test
