// Log-probabilities of a row's tokens: log_softmax(logits / temperature), summed in double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/likeliest.h"
#include "engine/token_weights.h"

namespace snug::engine {

class LogProbabilities {
 public:
  // The logits, before any penalty, must outlive the object; a temperature of 0 counts as 1. Throws
  // UserError where one of them is NaN or infinite, or none is above minus infinity.
  LogProbabilities(std::span<const float> logits, double temperature);

  // Minus infinity for a token that cannot come.
  double of(int32_t id) const;
  // Of all tokens, in nats: -sum p log(p).
  double entropy() const;
  // The `count` likeliest tokens, with their log-probabilities as weights, in descending order and
  // equal ones in ascending order of id; fewer where fewer can come.
  std::vector<Candidate> likeliest(size_t count);

 private:
  std::span<const float> logits_;
  BlockMaxima maxima_;
  TokenWeights weights_;
  double most_ = 0;
  double scale_ = 1;
  double log_sum_ = 0;
};

}  // namespace snug::engine
