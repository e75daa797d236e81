// Weights of a row's tokens, proportional to their probabilities: exp((logit - most) / temperature)
// in double, where `most` is the row's largest logit, so that the likeliest token weighs 1.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace snug::engine {

class TokenWeights {
 public:
  static constexpr size_t kBlock = 64;

  TokenWeights() = default;
  // The temperature is above 0.
  TokenWeights(double most, double temperature);

  double of(float logit) const;
  // Weights of at most kBlock tokens, within two units in the last place of exp(); 0 for NaN, minus
  // infinity, and what is below e^-708.
  void of(std::span<const float> block, double* weights) const;
  // The sum of all weights; `block_sums` receives those of the blocks.
  double sum(std::span<const float> logits) const;
  double sum(std::span<const float> logits, std::vector<double>& block_sums) const;

  // The mean distance of the tokens, each by its weight.
  double mean_distance(std::span<const float> logits) const;

  double scale() const { return scale_; }  // 1 / temperature
  // How far below the likeliest token: the negative logarithm of the weight.
  double distance(float logit) const { return (most_ - logit) * scale_; }
  // The smallest logit whose weight is at least `share`, which is at most 1.
  float least_logit(double share) const;

 private:
  double block_sum(std::span<const float> block) const;

  double most_ = 0;
  double scale_ = 1;
};

}  // namespace snug::engine
