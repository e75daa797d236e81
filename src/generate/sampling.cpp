#include "generate/sampling.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace snug::generate {
namespace {

// Uniform in [0, 1) with 53 random bits: 24 are too few where a vocabulary has 10^5 tokens.
double uniform_of(int64_t seed, const Draw& draw) {
  const auto key = static_cast<uint64_t>(seed);
  const auto prompt = static_cast<uint64_t>(draw.prompt);
  const auto token = static_cast<uint64_t>(draw.token);
  constexpr uint32_t kPurpose = 0x67656e65U;  // keeps these draws apart from those of training
  const base::PhiloxCounter words =
      base::philox({static_cast<uint32_t>(token), static_cast<uint32_t>(prompt),
                    static_cast<uint32_t>(prompt >> 32), kPurpose},
                   {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace

int32_t argmax(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best] || std::isnan(logits[best])) best = i;
  if (!std::isfinite(logits[best]))
    base::throw_user_error(
        "the model gives logits that are not finite, so no token can be chosen; its weights or its "
        "adapter are damaged, or compute_dtype=fp32 is needed");
  return static_cast<int32_t>(best);
}

double log_probability(std::span<const float> logits, int32_t id) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  return logits[static_cast<size_t>(id)] - most - std::log(sum);
}

int32_t Sampler::pick(std::span<const float> logits, const Draw& draw) {
  const int32_t best = argmax(logits);
  if (options_.temperature == 0 || options_.top_k == 1) return best;
  select(logits);
  weigh();
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double left = uniform_of(options_.seed, draw) * total;
  for (const Candidate& candidate : candidates_) {
    left -= candidate.weight;
    if (left < 0) return candidate.id;
  }
  return candidates_.front().id;  // rounding of the sum left nothing
}

// The top_k candidates, likeliest first where an order is needed.
void Sampler::select(std::span<const float> logits) {
  candidates_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates_[i] = {logits[i], static_cast<int32_t>(i)};
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  };
  const auto kept = static_cast<std::ptrdiff_t>(
      options_.top_k > 0 ? std::min(static_cast<size_t>(options_.top_k), logits.size())
                         : logits.size());
  if (options_.top_p < 1)
    std::partial_sort(candidates_.begin(), candidates_.begin() + kept, candidates_.end(), likelier);
  else if (options_.top_k > 0)
    std::nth_element(candidates_.begin(), candidates_.begin() + kept - 1, candidates_.end(),
                     likelier);
  candidates_.resize(static_cast<size_t>(kept));
}

// Logits become weights proportional to probabilities; top_p keeps the fewest that reach it.
void Sampler::weigh() {
  double most = candidates_.front().weight;
  for (const Candidate& candidate : candidates_) most = std::max(most, candidate.weight);
  double total = 0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((candidate.weight - most) / options_.temperature);
    total += candidate.weight;
  }
  if (options_.top_p >= 1) return;
  double reached = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && reached < options_.top_p * total)
    reached += candidates_[kept++].weight;
  candidates_.resize(std::max<size_t>(kept, 1));
}

}  // namespace snug::generate
