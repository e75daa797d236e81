// Tokenized documents. Their tokens lie in a file (base/spill_file.h), from which a row's documents
// are read when they are wanted; an index of 12 bytes a document stays in memory. Filled by one
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

namespace snug::text {

class DocumentStore {
 public:
  // Adds a document of at least 2 tokens. `trained` has one entry a token; what it says of the
  // first is ignored, since no token precedes it that could predict it. Ids are below 2^31. Throws
  // UserError where the tokens' file cannot be written.
  void add(std::span<const int32_t> ids, std::span<const uint8_t> trained);

  // Gives back what filling held beyond the need of reading; call once all documents are in.
  void finish();

  int64_t size() const { return size_; }  // documents
  int64_t tokens() const { return tokens_; }
  int32_t length(int64_t document) const {
    return static_cast<int32_t>(begin(document + 1) - begin(document));
  }
  int32_t longest() const { return longest_; }
  // The most documents that so many tokens hold: the shortest ones.
  int32_t most_in(int64_t tokens) const;

  // The tokens of a document as words, of which the functions below tell the parts. `words` has one
  // for each token. Allocates nothing. Throws UserError where the disk fails.
  void read(int64_t document, std::span<int32_t> words) const;
  static int32_t id_of(int32_t word) { return word & kIdMask; }
  // Whether a token is to be predicted from those before it.
  static bool is_target(int32_t word) { return word < 0; }
  int32_t targets(int64_t document) const {
    return chunk_of(document).targets[static_cast<size_t>(document % kChunk)];
  }

  // Of the ids, what is learned of them, and where documents begin; of all that was added.
  std::string fingerprint() const { return base::checksum_text(checksum_.value()); }

  // Exactly what is held in memory: 12 bytes a document, rounded up to chunks of 4096, and no more
  // than the file's buffer.
  int64_t host_bytes() const;

 private:
  static constexpr int32_t kIdMask = 0x7fffffff;

  // The index grows by chunks, so that growing never holds it twice.
  static constexpr int64_t kChunk = 4096;
  struct Chunk {
    std::array<int64_t, kChunk> begins;   // first tokens of documents
    std::array<int32_t, kChunk> targets;  // how many each has
  };

  const Chunk& chunk_of(int64_t document) const {
    return *chunks_[static_cast<size_t>(document / kChunk)];
  }
  int64_t begin(int64_t document) const {
    return document == size_ ? tokens_
                             : chunk_of(document).begins[static_cast<size_t>(document % kChunk)];
  }

  base::SpillFile words_;  // ids; the sign bit marks targets
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<int32_t> document_;  // the words of the one that is added
  int64_t size_ = 0;
  int64_t tokens_ = 0;
  int32_t longest_ = 0;
  base::ChecksumStream checksum_;
};

}  // namespace snug::text
