// A row's tokens, the likeliest first and of equal ones the smallest id, without sorting them:
// tokens are counted and weighed in buckets by their logits, and only a bucket in which a list of
// tokens ends is sorted. For lists of thousands of tokens, for which BlockMaxima is not made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/likeliest.h"
#include "engine/token_weights.h"

namespace snug::engine {

class RankedRow {
 public:
  // Where a list of the likeliest tokens ends, and the sum of their weights.
  struct End {
    size_t bucket = 0;
    size_t within = 0;  // how many tokens of that bucket belong to it
    double weight = 0;
    bool operator<(const End& other) const {
      return bucket != other.bucket ? bucket < other.bucket : within < other.within;
    }
  };

  // The logits, of which `most` is the largest, must stay valid. NaN and minus infinity are passed
  // over.
  void rank(std::span<const float> logits, float most, const TokenWeights& weights);

  // All tokens.
  End all() const;
  // The `count` likeliest, and those that are as likely as the last of them.
  End likeliest(int64_t count);
  // The fewest tokens whose weights add up to this.
  End reaching(double weight);
  // Those whose logit is at least this.
  End from(float least_logit);

  // The first token before `end` up to which weights add up to more than this; -1 where rounding
  // leaves none.
  int32_t token_at(double weight, const End& end);
  // The tokens before `end`, with their weights, in the order of their ids.
  std::vector<Candidate> tokens(const End& end);

 private:
  struct Bucket {
    double weight = 0;
    int64_t tokens = 0;
  };
  // 64 KiB of buckets stay in the cache. A row of 2^18 tokens has 64 in a bucket on average, which
  // are sorted in microseconds.
  static constexpr size_t kBuckets = 4096;
  std::span<const float> block_of(size_t begin) const;
  // The bucket of a logit, and of each logit of a block.
  int32_t place_of(float logit) const;
  void place_all(std::span<const float> block, int32_t* places) const;
  // The tokens of a bucket in order, with their logits.
  const std::vector<Candidate>& sorted(size_t bucket);
  double weight_of(const Candidate& token) const;

  std::span<const float> logits_;
  TokenWeights weights_;
  float most_ = 0;
  float buckets_per_logit_ = 0;
  float last_place_ = kBuckets - 1;  // no constant, which keeps the compiler from making branches
  std::vector<Bucket> buckets_;
  std::vector<Candidate> sorted_;
  size_t sorted_bucket_ = 0;
  bool has_sorted_ = false;
};

}  // namespace snug::engine
