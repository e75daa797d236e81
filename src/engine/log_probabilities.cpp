#include "engine/log_probabilities.h"

#include <algorithm>
#include <cmath>

#include "engine/sampling.h"

namespace snug::engine {
namespace {

bool has_nan(std::span<const float> logits) {
  int32_t count = 0;
  for (const float logit : logits) count += static_cast<int32_t>(logit != logit);
  return count > 0;
}

}  // namespace

LogProbabilities::LogProbabilities(std::span<const float> logits, double temperature)
    : logits_(logits) {
  maxima_.find(logits);
  const int32_t best = maxima_.likeliest();
  if (best < 0 || has_nan(logits)) refuse_logits();
  most_ = logits[static_cast<size_t>(best)];
  if (!std::isfinite(most_)) refuse_logits();
  weights_ = TokenWeights(most_, temperature > 0 ? temperature : 1);
  scale_ = weights_.scale();
  log_sum_ = std::log(weights_.sum(logits));
}

double LogProbabilities::of(int32_t id) const {
  return (logits_[static_cast<size_t>(id)] - most_) * scale_ - log_sum_;
}

double LogProbabilities::entropy() const { return log_sum_ + weights_.mean_distance(logits_); }

std::vector<Candidate> LogProbabilities::likeliest(size_t count) {
  std::vector<Candidate> tokens;
  maxima_.likeliest(std::min(count, logits_.size()), tokens);
  for (Candidate& token : tokens) token.weight = of(token.id);
  return tokens;
}

double log_probability(std::span<const float> logits, int32_t id) {
  const double result = LogProbabilities(logits, 1).of(id);
  if (!std::isfinite(result)) refuse_logits();
  return result;
}

}  // namespace snug::engine
