// The model of a tokenizer.json: what makes ids of one word, as the pre-tokenizer left it.
// Immutable apart from a cache; encode may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/record/json_node.h"
#include "text/tokenizer/model/vocabulary.h"

namespace snug::text {

class Model {
 public:
  virtual ~Model() = default;

  // A word, or a span of it, takes up to 40 bytes per byte while it is encoded, 20 MiB in all:
  // long ones take turns.
  static constexpr size_t kMaxBytes = size_t{512} << 10;

  // Appends the ids of `word` (valid UTF-8). Throws UserError for one longer than kMaxBytes, and
  // for one with characters that the vocabulary cannot express.
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) const = 0;

  // Whether each span of a word that a space's marker (U+2581) begins can be encoded apart.
  virtual bool splits_at_marker() const { return false; }
  // Where the last span of `word` begins that can be encoded apart whatever follows, 0 where
  // there is one only.
  virtual size_t last_span(std::string_view /*word*/) const { return 0; }

  virtual const Vocabulary& vocabulary() const = 0;
  virtual int64_t host_bytes() const = 0;

 protected:
  // Throws UserError for a word that is too long.
  static void require_short(std::string_view word);
};

struct TokenizerFile;

// The model that `model`, the "model" of a tokenizer.json less its vocabulary and merges, asks for:
// BPE, Unigram, WordPiece or WordLevel. Takes the vocabulary out of `file`. Throws UserError for
// what is not supported or does not fit together.
std::unique_ptr<Model> read_model(const JsonNode& model, TokenizerFile& file);

}  // namespace snug::text
