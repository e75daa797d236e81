// Tokenized documents in one flat array. Filled by one thread, then read by any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace snug::text {

class DocumentStore {
 public:
  // Adds a document of at least 2 tokens. `trained` has one entry a token; what it says of the
  // first is ignored, since no token precedes it that could predict it. Ids are below 2^31.
  void add(std::span<const int32_t> ids, std::span<const uint8_t> trained);

  // Gives back what growing held beyond its need; call once all documents are in.
  void shrink();

  int64_t size() const { return static_cast<int64_t>(trained_.size()); }  // documents
  int64_t tokens() const { return static_cast<int64_t>(words_.size()); }
  int32_t length(int64_t document) const {
    return static_cast<int32_t>(offsets_[document + 1] - offsets_[document]);
  }
  int32_t longest() const { return longest_; }
  // The most documents that so many tokens hold: the shortest ones.
  int32_t most_in(int64_t tokens) const;

  int32_t id(int64_t document, int32_t i) const { return words_[offsets_[document] + i] & kIdMask; }
  // Whether token `i` is to be predicted from those before it.
  bool is_target(int64_t document, int32_t i) const { return words_[offsets_[document] + i] < 0; }
  int32_t targets(int64_t document) const { return trained_[document]; }

  // Exactly what the arrays hold: after shrink 4 bytes a token, 12 a document and 8.
  int64_t host_bytes() const;

 private:
  static constexpr int32_t kIdMask = 0x7fffffff;

  std::vector<int32_t> words_;                              // ids; the sign bit marks targets
  std::vector<int64_t> offsets_ = std::vector<int64_t>(1);  // (documents + 1), into words_
  std::vector<int32_t> trained_;                            // (documents), targets of each
  int32_t longest_ = 0;
};

}  // namespace snug::text
