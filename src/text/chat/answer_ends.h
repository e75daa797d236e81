// Finds the tokens that end an answer: where the model has learned to write such a token, it has
// learned nothing to write after it, so generation should stop. Plain values.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "text/record/document.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

class AnswerEnds {
 public:
  // Notes, for each learned stretch of the document, the added token with which it ends, ignoring
  // white space after it.
  void add(const Document& document, const Tokenizer& tokenizer);
  void add(const AnswerEnds& other);

  // The noted tokens that never occur inside a learned stretch, as the end of a thought does.
  std::vector<int32_t> ids() const;

 private:
  void add_stretch(std::span<const int32_t> ids, const Tokenizer& tokenizer);

  std::set<int32_t> ends_;
  std::set<int32_t> within_;
};

}  // namespace snug::text
