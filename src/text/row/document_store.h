// Tokenized documents. Their tokens lie in a file (base/spill_file.h), from which a row's documents
// are read when they are needed. An index of 12 bytes per document stays in memory, or 16 if
// documents have a part for an encoder, and one more byte if they have a label. Filled by one
// thread, then read by any.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/spill_file.h"
#include "base/token_streams.h"
#include "text/row/document_lengths.h"

namespace snug::text {

using base::PerStream;
using base::TokenStream;

class DocumentStore {
 public:
  // Adds a document of at least 2 tokens. `trained` has one entry per token; the first is ignored,
  // since no token precedes it from which it could be predicted. Ids are below 2^31. `label`: 1 for
  // a desirable document, -1 for an undesirable one; either all documents of a store have one, or
  // none (0). Throws UserError if the tokens' file cannot be written.
  void add(std::span<const int32_t> ids, std::span<const uint8_t> trained, int8_t label = 0);
  // Adds a document of two parts with at least one token each: an encoder's input, and the tokens
  // that a decoder predicts, of which the first may be a target too. All documents of a store must
  // have an encoder's part, or none.
  void add_pair(std::span<const int32_t> encoder_ids, std::span<const int32_t> ids,
                std::span<const uint8_t> trained);

  // Frees memory that was only needed for adding; to be called after all documents are added.
  void finish();

  int64_t size() const { return size_; }  // number of documents
  // The streams for which documents have a part.
  bool has_encoder() const { return longest_.has_encoder(); }
  std::span<const TokenStream> streams() const { return longest_.streams(); }
  int64_t tokens() const { return tokens_.sum(); }  // in all streams
  int64_t tokens(TokenStream stream) const { return tokens_[stream]; }
  int32_t length(int64_t document, TokenStream stream = TokenStream::decoder) const;
  const PerStream<int32_t>& longest() const { return longest_; }
  DocumentLengths lengths() const;
  // The fewest tokens of a decoder that leave something to learn of each document: of an answer its
  // first token.
  int32_t least() const { return least_; }

  // Reads a document's part for a stream as words, one per token, which id_of and is_target decode.
  // Allocates nothing. Throws UserError if reading the disk fails.
  void read(int64_t document, std::span<int32_t> words,
            TokenStream stream = TokenStream::decoder) const;
  static int32_t id_of(int32_t word) { return word & kIdMask; }
  // Whether the token is to be predicted from those before it.
  static bool is_target(int32_t word) { return word < 0; }
  int32_t targets(int64_t document) const {
    return chunk_of(document).targets[static_cast<size_t>(document % kChunk)];
  }

  int8_t label(int64_t document) const {
    return labels_.empty() ? int8_t{0}
                           : (*labels_[static_cast<size_t>(document / kChunk)])[static_cast<size_t>(
                                 document % kChunk)];
  }

  // A fingerprint of everything that was added: the ids, which of them are learned, labels, and
  // where documents begin.
  std::string fingerprint() const { return base::checksum_text(checksum_.value()); }

  // The exact size of what is held in memory: the bytes above for each document, rounded up to
  // chunks of 4096 documents, plus at most the file's buffer.
  int64_t host_bytes() const;

 private:
  static constexpr int32_t kIdMask = 0x7fffffff;

  // The index grows in chunks, so that growing never copies it.
  static constexpr int64_t kChunk = 4096;
  struct Chunk {
    std::array<int64_t, kChunk> begins;   // index of each document's first token
    std::array<int32_t, kChunk> targets;  // number of each document's targets
  };

  using EncoderLengths = std::array<int32_t, kChunk>;
  using Labels = std::array<int8_t, kChunk>;

  // Sets the words of the current document; and appends it to the file and the index.
  void set_words(std::span<const int32_t> ids, std::span<const uint8_t> trained, bool first_too);
  void append(std::span<const int32_t> encoder_ids);
  void append_label(int8_t label);
  void append_part(TokenStream stream, std::span<const int32_t> words);
  const Chunk& chunk_of(int64_t document) const {
    return *chunks_[static_cast<size_t>(document / kChunk)];
  }
  int64_t begin(int64_t document) const {
    return document == size_ ? tokens()
                             : chunk_of(document).begins[static_cast<size_t>(document % kChunk)];
  }

  int32_t encoder_length(int64_t document) const {
    return has_encoder() ? (*encoder_lengths_[static_cast<size_t>(
                               document / kChunk)])[static_cast<size_t>(document % kChunk)]
                         : 0;
  }

  // Ids, the encoder's before the decoder's; the sign bit marks targets.
  base::SpillFile words_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::unique_ptr<EncoderLengths>> encoder_lengths_;  // empty without an encoder
  std::vector<std::unique_ptr<Labels>> labels_;                   // empty without labels
  std::vector<int32_t> document_;  // the words of the current document
  int64_t size_ = 0;
  PerStream<int64_t> tokens_ = 0;
  PerStream<int32_t> longest_ = 0;
  int32_t least_ = 0;
  base::ChecksumStream checksum_;
};

}  // namespace snug::text
