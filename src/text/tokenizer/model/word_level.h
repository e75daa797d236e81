// A model in which each word is one token, or the unknown token.
#pragma once

#include "text/tokenizer/model/model.h"

namespace snug::text {

class WordLevel : public Model {
 public:
  WordLevel(const JsonNode& model, Vocabulary vocabulary);

  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  int64_t host_bytes() const override { return vocabulary_.host_bytes(); }

 private:
  Vocabulary vocabulary_;
  int32_t unknown_ = -1;  // -1: there is none, and a word without a token is refused
};

}  // namespace snug::text
