// WordPiece: of a word the longest token that begins it, then of the rest the longest that
// continues it, and so on; a word that does not come out is the unknown token (Wu et al., "Google's
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
  // Whether the word came out; `ids` may hold some of it where not.
  bool encode_known(std::string_view word, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  std::string prefix_;             // of tokens that continue a word
  size_t longest_ = 0;             // bytes of the longest token
  int64_t most_characters_ = 100;  // of a word that is not unknown
  int32_t unknown_ = -1;           // no such token: a word that does not come out is refused
};

}  // namespace snug::text
