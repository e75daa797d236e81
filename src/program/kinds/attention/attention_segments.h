// What attention does within segments: how many pairs of a query and a key there are, and what is
// expected where no batch says. Internal to the kind's files.
//
// Pure functions.
#pragma once

#include <cstdint>

#include "program/work/extent.h"

namespace snug::program {

// Which keys of its segment a query sees (attention.h).
struct KeyMask {
  bool causal = true;
  int64_t window = 0;
};

// Segments of one length: what a batch holds of it, or what is expected of all.
struct AttentionSegments {
  double count = 0;
  double queries = 0;  // of one segment
  double keys = 0;     // of one segment
};

Extent extent_of_segments(const KeyMask& mask, const AttentionSegments& segments);

// Whether queries are those of another stream than the keys, and no cache is read: they see all
// keys, and are more than one for each segment that there is room for.
constexpr bool crosses_streams(bool causal, int64_t q_tokens, int64_t segments) {
  return !causal && q_tokens > segments;
}

// What an attention of these tokens is expected to do, its keys in segments of `mean_keys` tokens
// (0: nothing is known). Where queries and keys are as many, the rows of a micro-batch are cut into
// segments of that length; where they are of two streams, the keys. All else is generation: each
// segment has its share of the queries, and as many keys as are expected or as fit; so it is with
// keys in pages, whatever the numbers.
struct ExpectedAttention {
  int64_t q_tokens = 0;
  int64_t k_tokens = 0;
  bool causal = true;
  bool paged = false;          // keys are read through tables of k_tokens places
  int64_t segments = 0;        // that there is room for
  int64_t segment_tokens = 0;  // the most that one has; 0: any number
  double mean_keys = 0;
};
AttentionSegments expected_segments(const ExpectedAttention& expected);

// What segments ask for together. Their mean length counts one as often as it has queries.
class SegmentSum {
 public:
  explicit SegmentSum(const KeyMask& mask) : mask_(mask) {}
  void add(const AttentionSegments& segments);
  Extent extent() const;

 private:
  KeyMask mask_;
  Extent sum_;
};

}  // namespace snug::program
