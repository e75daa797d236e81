// A unigram language model of pieces: divides a word in the way with the largest sum of scores
// (Kudo, "Subword regularization", ACL 2018), found from left to right. A character without a piece
// costs a penalty. Consecutive characters without pieces become byte tokens <0x00> to <0xFF> if the
// file says so, else one unknown token. Immutable except for its word cache; encode may be called
// from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "text/tokenizer/model/model.h"
#include "text/tokenizer/model/prefix_trie.h"
#include "text/tokenizer/model/word_cache.h"

namespace snug::text {

class Unigram : public Model {
 public:
  // `scores`: one for each token of the vocabulary.
  Unigram(const JsonNode& model, Vocabulary vocabulary, std::vector<double> scores);

  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  int64_t host_bytes() const override;

 private:
  // The best division of a word up to a place in it.
  struct Place {
    double score = 0;
    int32_t id = -1;     // of the piece that ends here; -1: none does
    uint32_t begin = 0;  // start of that piece
  };
  struct Piece {
    uint32_t begin;
    uint32_t end;
    int32_t id;
  };

  void find_best(std::string_view word, std::vector<Place>& places) const;
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;  // by id
  PrefixTrie trie_;
  int32_t unknown_ = -1;
  double unknown_score_ = 0;
  std::optional<std::array<int32_t, 256>> byte_ids_;  // -1 where there is no such byte token
  mutable WordCache cache_;
};

}  // namespace snug::text
