// Picks a token from a row of logits. Random numbers are counter-based: the draw for a token
// depends only on the seed, the prompt's number and the token's number, so it does not change with
// the batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/likeliest.h"

namespace snug::engine {

struct SamplingOptions {
  double temperature = 0;         // 0: greedy
  int64_t top_k = 0;              // 0: all tokens
  double top_p = 1;               // 1: all tokens
  double repetition_penalty = 1;  // 1: none
  int64_t seed = 0;
};

// How many of the likeliest tokens are enough to choose from: 1 for greedy decoding, otherwise
// top_k. 0 means that all logits are needed: where top_k is 0 or above kMaxCandidates, or tokens
// are penalized.
inline constexpr int64_t kMaxCandidates = 256;
int64_t candidates_of(const SamplingOptions& options);

// Tokens with their logits, the likeliest first. The first id of -1 ends the list.
struct Likeliest {
  std::span<const float> logits;
  std::span<const int32_t> ids;
};

// Identifies a random draw within a job.
struct Draw {
  int64_t prompt = 0;
  int64_t token = 0;
};

// The likeliest token; among equally likely ones, the smallest id. Throws UserError when no logit
// is finite.
int32_t argmax(std::span<const float> logits);

// Makes tokens that have been seen less likely, each of them once: a logit above 0 is divided by
// the penalty, any other is multiplied by it, as transformers' RepetitionPenaltyLogitsProcessor
// does.
void penalize_repetition(std::span<const float> logits, std::span<const int32_t> seen,
                         double penalty, std::vector<float>& result);

// log(softmax(logits)[id]), summed in double. Throws UserError when the result is not finite.
double log_probability(std::span<const float> logits, int32_t id);

// Owns scratch memory for one thread. Temperature is applied first, then top_k, then top_p, as in
// transformers.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  int32_t pick(std::span<const float> logits, const Draw& draw);
  // Picks from the likeliest tokens, of which there must be candidates_of(options), which must not
  // be 0.
  int32_t pick(const Likeliest& likeliest, const Draw& draw);

 private:
  bool is_greedy() const { return options_.temperature == 0 || options_.top_k == 1; }
  int32_t drawn(const Draw& draw) const;
  // Each of these fills the list of tokens with weights proportional to their probabilities.
  void take_all(std::span<const float> logits);
  void weigh_top_k();
  void take_top_p(std::span<const float> logits);
  bool cut(double sum);
  double weight(double logit) const;

  SamplingOptions options_;
  double most_ = 0;  // the largest logit
  BlockMaxima maxima_;
  std::vector<Candidate> candidates_;
};

}  // namespace snug::engine
