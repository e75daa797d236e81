// Where the queries and keys of an attention lie in the cases of the operation suite.
#pragma once

#include <string>
#include <vector>

#include "operation_case.h"

namespace snug::backends::test {

// [begin, end) of each segment, unused ones (0, 0).
struct Bounds {
  std::string name;
  int64_t q_tokens, k_tokens;
  Values queries, keys;
  int64_t segments() const { return static_cast<int64_t>(queries.size()) / 2; }
};

Bounds whole(int64_t tokens);
// Queries that follow `past` keys: a chunk of a prompt, or one token of it.
Bounds chunk(int64_t queries, int64_t past, int64_t capacity);
// Segments of these lengths, one after the other.
Bounds rows_of(const std::vector<int64_t>& lengths);
// Random segments with gaps that none covers, then unused slots.
Bounds packed(Random& random, int64_t tokens);
// Segments of so many queries, each on so many keys of another stream; a token of either that none
// covers lies between two of them, and an unused slot follows.
Bounds crossed(const std::vector<int64_t>& queries, const std::vector<int64_t>& keys);
// One query for each of `sequences`, each with its own part of a cache, which is not full. Of those
// with `idle`, every third has none: its row of queries is in no segment.
Bounds decode(Random& random, int64_t sequences, int64_t capacity, bool idle = false);

// The greatest number of queries of a segment.
int64_t longest_of(const Bounds& bounds);

}  // namespace snug::backends::test
