#include "text/document_store.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace snug::text {

void DocumentStore::add(std::span<const int32_t> ids, std::span<const uint8_t> trained) {
  SNUG_CHECK_EQ(ids.size(), trained.size());
  SNUG_CHECK(ids.size() >= 2, "a document of {} tokens", ids.size());
  SNUG_CHECK(size() < std::numeric_limits<int32_t>::max(), "{} documents", size());
  int32_t targets = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_target = i > 0 && trained[i] != 0;
    targets += is_target ? 1 : 0;
    words_.push_back(is_target ? ids[i] | ~kIdMask : ids[i]);
  }
  offsets_.push_back(tokens());
  trained_.push_back(targets);
  longest_ = std::max(longest_, static_cast<int32_t>(ids.size()));
}

void DocumentStore::shrink() {
  words_.shrink_to_fit();
  offsets_.shrink_to_fit();
  trained_.shrink_to_fit();
}

int64_t DocumentStore::host_bytes() const {
  return static_cast<int64_t>(words_.capacity() * sizeof(int32_t) +
                              offsets_.capacity() * sizeof(int64_t) +
                              trained_.capacity() * sizeof(int32_t));
}

int32_t DocumentStore::most_in(int64_t tokens) const {
  std::vector<int32_t> lengths(static_cast<size_t>(size()));
  for (int64_t i = 0; i < size(); ++i) lengths[static_cast<size_t>(i)] = length(i);
  std::sort(lengths.begin(), lengths.end());
  int32_t most = 0;
  for (const int32_t length : lengths) {
    tokens -= length;
    if (tokens < 0) break;
    ++most;
  }
  return most;
}

}  // namespace snug::text
