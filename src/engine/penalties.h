// Makes tokens that have been seen less likely (or likelier) before one is picked.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampling.h"

namespace snug::engine {

// The tokens of a sequence: those that the decoder read before the answer, and the answer so far.
struct SeenTokens {
  std::span<const int32_t> read;
  std::span<const int32_t> answer;
};

// Owns scratch memory for one thread. Three penalties, in this order:
// - repetition_penalty, of all seen tokens, each of them once: a logit above 0 is divided by it,
//   any other is multiplied by it (transformers' RepetitionPenaltyLogitsProcessor);
// - frequency_penalty, taken from a token's logit once for each time that the answer has it;
// - presence_penalty, taken from the logit of each token that the answer has.
// The last two are OpenAI's (https://platform.openai.com/docs/api-reference/completions/create) as
// vLLM computes them: of the answer alone, in fp32, after the first.
class Penalties {
 public:
  explicit Penalties(const SamplingOptions& options) : options_(options) {}

  // The logits after the penalties, valid until the next call; `logits` itself where there are
  // none.
  std::span<const float> applied(std::span<const float> logits, const SeenTokens& seen);

 private:
  void subtract(std::span<const int32_t> answer);

  SamplingOptions options_;
  std::vector<float> result_;
  std::vector<int32_t> counts_;  // (vocabulary), 0 between calls
};

}  // namespace snug::engine
