// Byte-pair encoding of one word: its characters become tokens, then the pair with the earliest
// merge is merged, until no pair has one (Sennrich et al., "Neural machine translation of rare
// words with subword units", ACL 2016). Characters without a token become byte tokens <0x00> to
// <0xFF>, the unknown token, or nothing, depending on the file. With a priority queue over a linked
// list, n characters take O(n log n) time. Immutable except for its word cache; encode may be
// called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/record/json_node.h"
#include "text/tokenizer/model/merge_table.h"
#include "text/tokenizer/model/model.h"
#include "text/tokenizer/model/vocabulary.h"
#include "text/tokenizer/model/word_cache.h"

namespace snug::text {

using MergeRule = std::pair<std::string, std::string>;

class Bpe : public Model {
 public:
  // `model`: the "model" of a tokenizer.json without its vocab and merges, which are passed
  // separately since they are large. Throws UserError for what is not supported or inconsistent.
  Bpe(const JsonNode& model, Vocabulary vocabulary, const std::vector<MergeRule>& merges);

  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  bool splits_at_marker() const override { return splits_at_marker_ && !ignore_merges_; }
  size_t last_span(std::string_view word) const override;
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  int64_t host_bytes() const override;

 private:
  struct Symbol {
    int32_t id;
    int32_t previous;  // index of the neighbour; -1 at the ends
    int32_t next;
    bool merged_away;
  };
  struct Candidate {
    int32_t rank;
    int32_t position;
    int32_t result;
  };
  struct Scratch {
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  void read_merges(const JsonNode& model, const std::vector<MergeRule>& merges);
  void index_characters();
  bool is_stand_in(int32_t id) const;
  void close_unseen_joins(bool merges_stand_ins);
  bool is_span_begin(std::string_view word, size_t at) const;
  size_t span_end(std::string_view word, size_t begin) const;
  int32_t find_character(std::string_view character) const;
  bool push_bytes(std::string_view text, std::vector<Symbol>& symbols) const;
  void push_characters(std::string_view word, std::vector<Symbol>& symbols) const;
  void push_candidate(int32_t position, Scratch& scratch) const;
  void merge_symbols(Scratch& scratch) const;
  void encode_span(std::string_view span, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  std::string prefix_;  // continuing_subword_prefix
  std::string suffix_;  // end_of_word_suffix
  int32_t unknown_ = -1;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  std::optional<std::array<int32_t, 256>> byte_ids_;  // -1 where there is no such byte token
  // Whether no token contains the space marker after another character. Then no merge crosses such
  // a place, and each span that begins with a marker can be encoded separately.
  bool splits_at_marker_ = false;
  // For each two classes, whether a merge joins a token that ends in a character of the first to
  // one that begins with a character of the second. If none does, spans on both sides can be
  // encoded separately, too.
  static constexpr size_t kClasses = 130;  // ASCII characters, the marker, and all others
  using Joins = std::array<std::array<bool, kClasses>, kClasses>;
  Joins joins_{};
  std::vector<int32_t> first_characters_;  // ids of the characters below U+0800; -1: none
  mutable WordCache cache_;
};

}  // namespace snug::text
