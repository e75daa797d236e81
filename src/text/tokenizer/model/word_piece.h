// WordPiece: takes the longest token with which a word begins, then the longest that continues it,
// and so on; a word that cannot be divided in this way is the unknown token (Wu et al., "Google's
// neural machine translation system", 2016).
#pragma once

#include <string>

#include "text/tokenizer/model/model.h"

namespace snug::text {

class WordPiece : public Model {
 public:
  WordPiece(const JsonNode& model, Vocabulary vocabulary);

  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  int64_t host_bytes() const override { return vocabulary_.host_bytes(); }

 private:
  // Returns whether the word could be divided; if not, `ids` may hold a part of it.
  bool encode_known(std::string_view word, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  std::string prefix_;  // of tokens that continue a word
  size_t longest_ = 0;  // bytes of the longest token
  // Longer words are the unknown token.
  int64_t most_characters_ = 100;
  // -1: there is none, and a word that cannot be divided is refused.
  int32_t unknown_ = -1;
};

}  // namespace snug::text
