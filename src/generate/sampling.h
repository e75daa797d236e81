// From a row of logits to a token. Random numbers are counter-based: the draw of a token depends on
// the seed, the prompt's number and the token's number only, so it does not change with the batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/likeliest.h"

namespace snug::generate {

struct SamplingOptions {
  double temperature = 0;  // 0: greedy
  int64_t top_k = 0;       // 0: all tokens
  double top_p = 1;        // 1: all tokens
  int64_t seed = 0;
};

// Which draw of a job this is.
struct Draw {
  int64_t prompt = 0;
  int64_t token = 0;
};

// The likeliest token; of equal ones that with the smallest id. Throws UserError when no logit is
// finite.
int32_t argmax(std::span<const float> logits);

// log(softmax(logits)[id]), summed in double. Throws UserError when it is not finite.
double log_probability(std::span<const float> logits, int32_t id);

// Owns the scratch of one thread. Temperature acts first, then top_k, then top_p, as in
// transformers.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  int32_t pick(std::span<const float> logits, const Draw& draw);

 private:
  // Each leaves tokens with weights in proportion to their probabilities.
  void take_all(std::span<const float> logits);
  void take_top_k();
  void take_top_p(std::span<const float> logits);
  bool cut(double sum);
  double weight(double logit) const;

  SamplingOptions options_;
  double most_ = 0;  // the largest logit
  BlockMaxima maxima_;
  std::vector<Candidate> candidates_;
};

}  // namespace snug::generate
