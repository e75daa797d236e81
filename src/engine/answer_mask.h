// An answer's form, as the tokens that the sampler may choose from: logits of all others become
// minus infinity, before anything is cut away. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "text/grammar/token_mask.h"

namespace snug::engine {

class AnswerMask {
 public:
  // `end_ids`: they end the answer, and may come where it is complete and nowhere else.
  AnswerMask(std::shared_ptr<text::TokenGrammar> grammar, std::span<const int32_t> end_ids);

  // The logits of a row, with minus infinity for the tokens that may not come; valid until the
  // next call. (vocabulary)
  std::span<const float> applied(std::span<const float> logits);

  // Goes on with the token that was chosen. Returns whether another may follow it: where none may,
  // the answer is whole.
  bool accept(int32_t id);

 private:
  bool is_end(int32_t id) const;

  text::TokenMask mask_;
  std::vector<int32_t> end_ids_;
  std::vector<float> result_;
};

}  // namespace snug::engine
