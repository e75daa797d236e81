#include "engine/ranked_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace snug::engine {
namespace {

constexpr float kNoLogit = -std::numeric_limits<float>::infinity();
// 64 KiB of buckets stay in the cache. A row of 2^18 tokens has 64 in a bucket on average, which
// are sorted in microseconds.
constexpr size_t kBuckets = 4096;
// Tokens further below the likeliest one (e^-32 is 1e-14) share the last bucket.
constexpr double kMaxDistance = 32;

}  // namespace

void RankedRow::rank(std::span<const float> logits, const TokenWeights& weights) {
  logits_ = logits;
  weights_ = weights;
  has_sorted_ = false;
  buckets_.assign(kBuckets, {});
  float least = std::numeric_limits<float>::max();
  for (const float logit : logits) least = logit < least && logit > kNoLogit ? logit : least;
  const double range = std::clamp(weights.distance(least), 0x1p-1000, kMaxDistance);
  buckets_per_distance_ = static_cast<double>(kBuckets - 1) / range;
  std::array<double, TokenWeights::kBlock> block;
  for (size_t begin = 0; begin < logits.size(); begin += block.size()) {
    const size_t size = std::min(block.size(), logits.size() - begin);
    weights.of(logits.subspan(begin, size), block.data());
    for (size_t i = 0; i < size; ++i) {
      if (!(logits[begin + i] > kNoLogit)) continue;
      Bucket& bucket = buckets_[bucket_of(logits[begin + i])];
      bucket.weight += block[i];
      ++bucket.tokens;
    }
  }
}

// A larger logit is never in a later bucket.
size_t RankedRow::bucket_of(float logit) const {
  const double place = weights_.distance(logit) * buckets_per_distance_;
  return static_cast<size_t>(std::min(place, static_cast<double>(kBuckets - 1)));
}

double RankedRow::weight_of(const Candidate& token) const {
  return weights_.of(static_cast<float>(token.weight));
}

const std::vector<Candidate>& RankedRow::sorted(size_t bucket) {
  if (has_sorted_ && sorted_bucket_ == bucket) return sorted_;
  sorted_.clear();
  for (size_t i = 0; i < logits_.size(); ++i)
    if (logits_[i] > kNoLogit && bucket_of(logits_[i]) == bucket)
      sorted_.push_back({logits_[i], static_cast<int32_t>(i)});
  // Tokens that are all as likely are in order already.
  if (!std::ranges::is_sorted(sorted_, is_likelier)) std::ranges::sort(sorted_, is_likelier);
  sorted_bucket_ = bucket;
  has_sorted_ = true;
  return sorted_;
}

RankedRow::End RankedRow::all() const {
  End end{.bucket = kBuckets};
  for (const Bucket& bucket : buckets_) end.weight += bucket.weight;
  return end;
}

RankedRow::End RankedRow::likeliest(int64_t count) {
  End end;
  while (end.bucket < kBuckets && buckets_[end.bucket].tokens < count) {
    count -= buckets_[end.bucket].tokens;
    end.weight += buckets_[end.bucket++].weight;
  }
  if (end.bucket == kBuckets) return end;
  const std::vector<Candidate>& tokens = sorted(end.bucket);
  end.within = static_cast<size_t>(count);
  while (end.within < tokens.size() && end.within > 0 &&
         tokens[end.within].weight == tokens[end.within - 1].weight)
    ++end.within;
  for (size_t i = 0; i < end.within; ++i) end.weight += weight_of(tokens[i]);
  return end;
}

RankedRow::End RankedRow::reaching(double weight) {
  End end;
  while (end.bucket < kBuckets && end.weight + buckets_[end.bucket].weight < weight)
    end.weight += buckets_[end.bucket++].weight;
  if (end.bucket == kBuckets) return end;
  for (const Candidate& token : sorted(end.bucket)) {
    if (end.weight >= weight) break;
    end.weight += weight_of(token);
    ++end.within;
  }
  return end;
}

RankedRow::End RankedRow::from(float least_logit) {
  End end;
  if (!(least_logit > kNoLogit)) return all();
  const size_t last = bucket_of(least_logit);
  while (end.bucket < last) end.weight += buckets_[end.bucket++].weight;
  for (const Candidate& token : sorted(last)) {
    if (static_cast<float>(token.weight) < least_logit) break;
    end.weight += weight_of(token);
    ++end.within;
  }
  return end;
}

int32_t RankedRow::token_at(double weight, const End& end) {
  size_t bucket = 0;
  while (bucket < end.bucket && weight >= buckets_[bucket].weight)
    weight -= buckets_[bucket++].weight;
  for (; bucket < kBuckets; ++bucket) {
    const std::vector<Candidate>& tokens = sorted(bucket);
    const size_t last = bucket < end.bucket ? tokens.size() : end.within;
    for (size_t i = 0; i < last; ++i)
      if ((weight -= weight_of(tokens[i])) < 0) return tokens[i].id;
    if (bucket >= end.bucket) break;
  }
  return -1;
}

std::vector<Candidate> RankedRow::tokens(const End& end) {
  std::vector<Candidate> found;
  for (size_t i = 0; i < logits_.size(); ++i)
    if (logits_[i] > kNoLogit && bucket_of(logits_[i]) < end.bucket)
      found.push_back({weights_.of(logits_[i]), static_cast<int32_t>(i)});
  for (size_t i = 0; i < end.within; ++i) {
    const Candidate& token = sorted(end.bucket)[i];
    found.push_back({weight_of(token), token.id});
  }
  std::ranges::sort(found, {}, &Candidate::id);
  return found;
}

}  // namespace snug::engine
