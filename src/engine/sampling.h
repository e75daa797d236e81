// Picks a token from a row of logits. Random numbers are counter-based: the draw for a token
// depends only on the seed, the answer's number and the token's number, so it does not change with
// the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/likeliest.h"
#include "engine/ranked_row.h"
#include "engine/token_weights.h"

namespace snug::engine {

struct SamplingOptions {
  double temperature = 0;         // 0: greedy
  int64_t top_k = 0;              // 0: all tokens
  double top_p = 1;               // 1: all tokens
  double min_p = 0;               // 0: all tokens
  double repetition_penalty = 1;  // 1: none; engine/penalties.h defines the penalties
  double presence_penalty = 0;    // 0: none
  double frequency_penalty = 0;   // 0: none
  int64_t seed = 0;

  bool penalizes() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
};

// Throws UserError for values that mean nothing, such as a temperature below 0.
void check_sampling(const SamplingOptions& options);

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

// Throws UserError: the model gives logits that are not finite.
[[noreturn]] void refuse_logits();

// The likeliest token; among equally likely ones, the smallest id. Throws UserError when no logit
// is finite.
int32_t argmax(std::span<const float> logits);

// log(softmax(logits)[id]), summed in double. Throws UserError when the result is not finite.
double log_probability(std::span<const float> logits, int32_t id);

// Cuts a row to the tokens that can come, as transformers' generate does, in its order:
// - temperature divides the logits;
// - top_k keeps so many of the likeliest, and those that are as likely as the last of them;
// - top_p keeps the fewest of the likeliest whose probabilities (of those kept so far) add up to
//   it, at least one; of equally likely ones those with the smallest ids, where transformers leaves
//   it to the order in which torch sorts equals;
// - min_p keeps those whose probability is at least this share of the likeliest one's.
// Probabilities are in double, transformers' in fp32. NaN and minus infinity never come. Owns
// scratch memory for one thread.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  // Throws UserError when the largest logit is not finite.
  int32_t pick(std::span<const float> logits, const Draw& draw);
  // Picks from the likeliest tokens, of which there must be candidates_of(options), which must not
  // be 0. Of tokens that are as likely as the last one, only those in the list can come.
  int32_t pick(const Likeliest& likeliest, const Draw& draw);

  // The token at `quantile`, in [0, 1), of the probabilities of the tokens that can come, in the
  // order in which pick() goes through them: the likeliest first with top_k or top_p, else by id.
  int32_t token_at(std::span<const float> logits, double quantile);
  // The tokens that can come with their probabilities, in the order of their ids.
  std::vector<Candidate> distribution(std::span<const float> logits);

 private:
  // Where the tokens that can come are.
  enum class Kept : uint8_t {
    best,    // the likeliest token alone
    list,    // candidates_, with weights
    ranked,  // those of ranked_ before end_
    all,     // the row, with block_sums_
  };
  bool is_greedy() const { return options_.temperature == 0 || options_.top_k == 1; }
  Kept cut(std::span<const float> logits);
  void cut_list();
  bool cut_by_top_p(std::span<const float> logits);
  Kept rank(std::span<const float> logits);
  size_t count_above_min_p() const;
  double weigh_list();
  std::optional<size_t> count_reaching(double sum) const;
  int32_t of_list(double quantile) const;
  int32_t of_all(std::span<const float> logits, double quantile) const;

  SamplingOptions options_;
  TokenWeights weights_;
  int32_t best_ = 0;
  BlockMaxima maxima_;
  std::vector<Candidate> candidates_;
  double total_ = 0;  // of the weights of the whole row, where it is needed
  std::vector<double> block_sums_;
  RankedRow ranked_;
  RankedRow::End end_;
};

}  // namespace snug::engine
