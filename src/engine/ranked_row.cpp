#include "engine/ranked_row.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace snug::engine {
namespace {

constexpr float kNoLogit = -std::numeric_limits<float>::infinity();
// Tokens further below the likeliest one (e^-32 is 1e-14) share the last bucket.
constexpr double kMaxDistance = 32;
constexpr size_t kRankedBlock = TokenWeights::kBlock;

float least_finite(std::span<const float> logits) {
  constexpr size_t kLanes = 16;
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto smaller = [](float a, float b) { return a < b && a > kNoLogit ? a : b; };
  std::array<float, kLanes> lanes;
  lanes.fill(kMost);
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = smaller(logits[i + lane], lanes[lane]);
  float least = kMost;
  for (; i < logits.size(); ++i) least = smaller(logits[i], least);
  for (const float lane : lanes) least = smaller(lane, least);
  return least;
}

}  // namespace

void RankedRow::rank(std::span<const float> logits, float most, const TokenWeights& weights) {
  logits_ = logits;
  weights_ = weights;
  most_ = most;
  has_sorted_ = false;
  buckets_.assign(kBuckets, {});
  const double range =
      std::min<double>(most - least_finite(logits), kMaxDistance / weights.scale());
  buckets_per_logit_ = range > 0 ? static_cast<float>(last_place_ / range) : 0.0F;
  std::array<double, kRankedBlock> weight;
  std::array<int32_t, kRankedBlock> place;
  for (size_t begin = 0; begin < logits.size(); begin += kRankedBlock) {
    const std::span<const float> block = block_of(begin);
    weights.of(block, weight.data());
    place_all(block, place.data());
    for (size_t i = 0; i < block.size(); ++i) {
      Bucket& bucket = buckets_[static_cast<size_t>(place[i])];
      bucket.weight += weight[i];
      ++bucket.tokens;
    }
  }
}

std::span<const float> RankedRow::block_of(size_t begin) const {
  return logits_.subspan(begin, std::min(kRankedBlock, logits_.size() - begin));
}

// A larger logit is never in a later bucket. NaN, minus infinity and what is far below are in the
// last one.
int32_t RankedRow::place_of(float logit) const {
  const float place = (most_ - logit) * buckets_per_logit_;
  return static_cast<int32_t>(place < last_place_ ? place : last_place_);
}

void RankedRow::place_all(std::span<const float> block, int32_t* places) const {
  for (size_t i = 0; i < block.size(); ++i) places[i] = place_of(block[i]);
}

double RankedRow::weight_of(const Candidate& token) const {
  return weights_.of(static_cast<float>(token.weight));
}

const std::vector<Candidate>& RankedRow::sorted(size_t bucket) {
  if (has_sorted_ && sorted_bucket_ == bucket) return sorted_;
  sorted_.clear();
  std::array<int32_t, kRankedBlock> place;
  for (size_t begin = 0; begin < logits_.size(); begin += kRankedBlock) {
    const std::span<const float> block = block_of(begin);
    place_all(block, place.data());
    for (size_t i = 0; i < block.size(); ++i)
      if (place[i] == static_cast<int32_t>(bucket) && block[i] > kNoLogit)
        sorted_.push_back({block[i], static_cast<int32_t>(begin + i)});
  }
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
  end.within = std::min(static_cast<size_t>(count), tokens.size());
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
  const auto last = static_cast<size_t>(place_of(least_logit));
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
    if (logits_[i] > kNoLogit && static_cast<size_t>(place_of(logits_[i])) < end.bucket)
      found.push_back({weights_.of(logits_[i]), static_cast<int32_t>(i)});
  for (size_t i = 0; i < end.within; ++i) {
    const Candidate& token = sorted(end.bucket)[i];
    found.push_back({weight_of(token), token.id});
  }
  std::ranges::sort(found, {}, &Candidate::id);
  return found;
}

}  // namespace snug::engine
