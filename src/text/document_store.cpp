#include "text/document_store.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"

namespace snug::text {

void DocumentStore::add(std::span<const int32_t> ids, std::span<const uint8_t> trained) {
  SNUG_CHECK_EQ(ids.size(), trained.size());
  SNUG_CHECK(ids.size() >= 2, "a document of {} tokens", ids.size());
  if (size_ == std::numeric_limits<int32_t>::max())
    base::throw_user_error("the data has more than {} documents; train on a part of it", size_);
  int32_t targets = 0;
  document_.clear();
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_target = i > 0 && trained[i] != 0;
    targets += is_target ? 1 : 0;
    document_.push_back(is_target ? ids[i] | ~kIdMask : ids[i]);
  }
  if (size_ % kChunk == 0) chunks_.push_back(std::make_unique<Chunk>());
  Chunk& chunk = *chunks_.back();
  chunk.begins[static_cast<size_t>(size_ % kChunk)] = tokens_;
  chunk.targets[static_cast<size_t>(size_ % kChunk)] = targets;
  const auto length = static_cast<int64_t>(ids.size());
  const auto bytes = static_cast<int64_t>(document_.size() * sizeof(int32_t));
  words_.append(document_.data(), bytes);
  checksum_.add(&length, sizeof(length));
  checksum_.add(document_.data(), bytes);
  ++size_;
  tokens_ += length;
  longest_ = std::max(longest_, static_cast<int32_t>(length));
}

void DocumentStore::finish() {
  words_.finish();
  document_ = std::vector<int32_t>();
}

void DocumentStore::read(int64_t document, std::span<int32_t> words) const {
  SNUG_CHECK_EQ(words.size(), static_cast<size_t>(length(document)));
  words_.read_at(begin(document) * static_cast<int64_t>(sizeof(int32_t)), words.data(),
                 static_cast<int64_t>(words.size_bytes()));
}

int64_t DocumentStore::host_bytes() const {
  return words_.host_bytes() + static_cast<int64_t>(chunks_.size() * sizeof(Chunk) +
                                                    document_.capacity() * sizeof(int32_t));
}

int32_t DocumentStore::most_in(int64_t tokens) const {
  // Lengths are few: they are below max_length.
  std::map<int32_t, int32_t> counts;
  for (int64_t i = 0; i < size(); ++i) ++counts[length(i)];
  int32_t most = 0;
  for (const auto& [length, count] : counts) {
    const auto fit = static_cast<int32_t>(std::min<int64_t>(count, tokens / length));
    most += fit;
    tokens -= int64_t{fit} * length;
    if (fit < count) break;
  }
  return most;
}

}  // namespace snug::text
