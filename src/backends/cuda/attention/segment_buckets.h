// How segments of unlike lengths are given to a library that launches blocks as if every segment
// were as long as the longest: in buckets by length, a call each, so that most blocks have work.
// A pure function, so that plans need no driver for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace snug::backends::cuda {

// The segments of more than `above` tokens and at most `longest`.
struct SegmentBucket {
  int64_t above = 0;
  int64_t longest = 0;
  int64_t segments = 0;  // the most that a batch can have
  bool operator==(const SegmentBucket&) const = default;
};

// Of at most so many segments, none longer than `segment_tokens`, in a row of `tokens` tokens. One
// bucket holds all where the room of all of them is at most kMaxIdle times the tokens. Otherwise
// each bucket goes up to four times the length of the one before it, and no more segments of one
// lie in a row than their shortest leaves room for, so its room is about four times the tokens.
constexpr int64_t kMaxIdle = 8;
constexpr int64_t kFirstBucketTokens = 128;
constexpr int64_t kBucketGrowth = 4;
inline std::vector<SegmentBucket> segment_buckets(int64_t segments, int64_t segment_tokens,
                                                  int64_t tokens) {
  if (segments * segment_tokens <= kMaxIdle * tokens) return {{0, segment_tokens, segments}};
  std::vector<SegmentBucket> buckets;
  buckets.reserve(8);  // more than rows have: the eighth begins at two million tokens
  int64_t above = 0;
  for (int64_t longest = kFirstBucketTokens; above < segment_tokens; longest *= kBucketGrowth) {
    const int64_t end = std::min(longest, segment_tokens);
    const int64_t most = std::clamp<int64_t>(tokens / (above + 1), 1, segments);
    buckets.push_back({above, end, most});
    above = end;
  }
  return buckets;
}

// Whether a bucket has far more room than its segments can have tokens.
inline bool is_mostly_idle(const SegmentBucket& bucket, int64_t tokens) {
  return bucket.segments * bucket.longest > kMaxIdle * tokens;
}

}  // namespace snug::backends::cuda
