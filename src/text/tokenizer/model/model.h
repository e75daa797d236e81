// The model of a tokenizer.json, which encodes one word of the pre-tokenizer's output. Immutable
// except for a cache; encode may be called from any thread.
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

  // The longest word, or span of it, that is encoded. Encoding takes up to 40 bytes per byte, 20
  // MiB in all, so only one long word is encoded at a time.
  static constexpr size_t kMaxBytes = size_t{512} << 10;

  // Appends the ids of `word` (valid UTF-8). Throws UserError for a word longer than kMaxBytes, and
  // for one with characters that the vocabulary cannot express.
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) const = 0;

  // Whether each span of a word that begins with a space marker (U+2581) can be encoded separately.
  virtual bool splits_at_marker() const { return false; }
  // The start of the last span of `word` that can be encoded separately, whatever follows; 0 if
  // there is only one span.
  virtual size_t last_span(std::string_view /*word*/) const { return 0; }

  virtual const Vocabulary& vocabulary() const = 0;
  virtual int64_t host_bytes() const = 0;

 protected:
  // Throws UserError for a word that is too long.
  static void require_short(std::string_view word);
};

struct TokenizerFile;

// The model that `model` describes, the "model" of a tokenizer.json without its vocabulary and
// merges: BPE, Unigram, WordPiece or WordLevel. Moves the vocabulary out of `file`. Throws
// UserError for what is not supported or inconsistent.
std::unique_ptr<Model> read_model(const JsonNode& model, TokenizerFile& file);

}  // namespace snug::text
