// The tokens that end what is learned: a model that has learned to write one has nothing to write
// after it, so generation is to end there. Plain values.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "text/record/document.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

class AnswerEnds {
 public:
  // Of each stretch of the document that is learned: the added token that it ends with, white space
  // after it aside.
  void add(const Document& document, const Tokenizer& tokenizer);
  void add(const AnswerEnds& other);

  // Those that never stand within what is learned, as the end of a thought does.
  std::vector<int32_t> ids() const;

 private:
  void add_stretch(std::span<const int32_t> ids, const Tokenizer& tokenizer);

  std::set<int32_t> ends_;
  std::set<int32_t> within_;
};

}  // namespace snug::text
