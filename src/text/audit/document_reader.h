// Reads documents of a store one after another, into buffers that are as long as the longest one.
// One thread; the store must outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "text/row/document_store.h"

namespace snug::text {

// Documents of a store that belong together, as those of one source do.
struct DocumentRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

class DocumentReader {
 public:
  explicit DocumentReader(const DocumentStore& documents) : documents_(documents) {}

  // The words of a document's part for a stream, as DocumentStore::read gives them, until the next
  // call for the same stream; none where the store has no such stream.
  std::span<const int32_t> words(int64_t document, TokenStream stream = TokenStream::decoder) {
    if (stream == TokenStream::encoder && !documents_.has_encoder()) return {};
    std::vector<int32_t>& buffer = buffers_[static_cast<size_t>(stream)];
    buffer.resize(static_cast<size_t>(documents_.length(document, stream)));
    documents_.read(document, buffer, stream);
    return buffer;
  }

  const DocumentStore& documents() const { return documents_; }

 private:
  const DocumentStore& documents_;
  std::array<std::vector<int32_t>, 2> buffers_;
};

}  // namespace snug::text
