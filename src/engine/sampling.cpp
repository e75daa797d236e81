#include "engine/sampling.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace snug::engine {
namespace {

// Uniform in [0, 1) with 53 random bits: 24 bits are too few for a vocabulary of 10^5 tokens.
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

[[noreturn]] void refuse_logits() {
  base::throw_user_error(
      "the model gives logits that are not finite, so no token can be chosen or scored; its "
      "weights "
      "or its adapter are damaged, or compute_dtype=fp32 is needed");
}

int32_t finite_likeliest(const BlockMaxima& maxima, std::span<const float> logits) {
  const int32_t best = maxima.likeliest();
  if (best < 0 || !std::isfinite(logits[static_cast<size_t>(best)])) refuse_logits();
  return best;
}

}  // namespace

int32_t argmax(std::span<const float> logits) {
  BlockMaxima maxima;
  maxima.find(logits);
  return finite_likeliest(maxima, logits);
}

double log_probability(std::span<const float> logits, int32_t id) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  const double result = logits[static_cast<size_t>(id)] - most - std::log(sum);
  if (!std::isfinite(result)) refuse_logits();
  return result;
}

void penalize_repetition(std::span<const float> logits, std::span<const int32_t> seen,
                         double penalty, std::vector<float>& result) {
  const auto factor = static_cast<float>(penalty);
  result.assign(logits.begin(), logits.end());
  for (const int32_t id : seen) {
    const auto at = static_cast<size_t>(id);
    result[at] = logits[at] < 0 ? logits[at] * factor : logits[at] / factor;
  }
}

int64_t candidates_of(const SamplingOptions& options) {
  if (options.repetition_penalty != 1) return 0;
  if (options.temperature == 0 || options.top_k == 1) return 1;
  return options.top_k <= kMaxCandidates ? options.top_k : 0;
}

int32_t Sampler::pick(std::span<const float> logits, const Draw& draw) {
  maxima_.find(logits);
  const int32_t best = finite_likeliest(maxima_, logits);
  if (is_greedy()) return best;
  most_ = logits[static_cast<size_t>(best)];
  if (options_.top_k > 0) {
    maxima_.likeliest(static_cast<size_t>(options_.top_k), candidates_);
    weigh_top_k();
  } else if (options_.top_p < 1) {
    take_top_p(logits);
  } else {
    take_all(logits);
  }
  const int32_t id = drawn(draw);
  return id < 0 ? best : id;
}

int32_t Sampler::pick(const Likeliest& likeliest, const Draw& draw) {
  const int32_t best = likeliest.ids.front();
  if (best < 0 || !std::isfinite(likeliest.logits.front())) refuse_logits();
  if (is_greedy()) return best;
  most_ = likeliest.logits.front();
  candidates_.clear();
  for (size_t i = 0; i < likeliest.ids.size() && likeliest.ids[i] >= 0; ++i)
    candidates_.push_back({likeliest.logits[i], likeliest.ids[i]});
  weigh_top_k();
  const int32_t id = drawn(draw);
  return id < 0 ? best : id;
}

// Returns -1 where rounding of the sum leaves no token chosen.
int32_t Sampler::drawn(const Draw& draw) const {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double left = uniform_of(options_.seed, draw) * total;
  for (const Candidate& candidate : candidates_) {
    left -= candidate.weight;
    if (left < 0) return candidate.id;
  }
  return -1;
}

double Sampler::weight(double logit) const {
  return std::exp((logit - most_) / options_.temperature);
}

void Sampler::take_all(std::span<const float> logits) {
  candidates_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    candidates_[i] = {std::isnan(logits[i]) ? 0 : weight(logits[i]), static_cast<int32_t>(i)};
}

void Sampler::weigh_top_k() {
  double total = 0;
  for (Candidate& candidate : candidates_) total += candidate.weight = weight(candidate.weight);
  if (options_.top_p < 1) cut(options_.top_p * total);
}

// Takes more and more of the likeliest tokens until their probabilities sum to top_p.
void Sampler::take_top_p(std::span<const float> logits) {
  constexpr size_t kFirst = 256;
  constexpr size_t kGrowth = 8;
  double total = 0;
  for (const float logit : logits)
    if (!std::isnan(logit)) total += weight(logit);
  for (size_t count = kFirst;; count *= kGrowth) {
    maxima_.likeliest(count, candidates_);
    for (Candidate& candidate : candidates_) candidate.weight = weight(candidate.weight);
    if (cut(options_.top_p * total) || candidates_.size() < count) return;
  }
}

// Keeps the fewest candidates, at least one, whose weights reach the sum; returns false where all
// of them together do not reach it.
bool Sampler::cut(double sum) {
  double reached = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && reached < sum) reached += candidates_[kept++].weight;
  if (reached < sum) return false;
  candidates_.resize(std::max<size_t>(kept, 1));
  return true;
}

}  // namespace snug::engine
