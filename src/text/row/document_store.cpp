#include "text/row/document_store.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"

namespace snug::text {

void DocumentStore::add(std::span<const int32_t> ids, std::span<const uint8_t> trained,
                        int8_t label) {
  SNUG_CHECK_EQ(ids.size(), trained.size());
  SNUG_CHECK(ids.size() >= 2, "a document of {} tokens", ids.size());
  SNUG_CHECK(!has_encoder(), "a document for a decoder alone after {} of two parts", size_);
  SNUG_CHECK((label != 0) == !labels_.empty() || size_ == 0, "of {} documents some have labels",
             size_ + 1);
  set_words(ids, trained, false);
  if (label != 0) append_label(label);
  append({});
}

void DocumentStore::add_pair(std::span<const int32_t> encoder_ids, std::span<const int32_t> ids,
                             std::span<const uint8_t> trained) {
  SNUG_CHECK_EQ(ids.size(), trained.size());
  SNUG_CHECK(!ids.empty() && !encoder_ids.empty(), "a document of {} and {} tokens",
             encoder_ids.size(), ids.size());
  SNUG_CHECK(has_encoder() || size_ == 0, "a document of two parts after {} of one", size_);
  if (size_ == 0) {
    longest_ = {0, 0};
    tokens_ = {0, 0};
  }
  set_words(ids, trained, true);
  append(encoder_ids);
}

void DocumentStore::set_words(std::span<const int32_t> ids, std::span<const uint8_t> trained,
                              bool first_too) {
  document_.clear();
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool is_target = (i > 0 || first_too) && trained[i] != 0;
    document_.push_back(is_target ? ids[i] | ~kIdMask : ids[i]);
  }
}

void DocumentStore::append(std::span<const int32_t> encoder_ids) {
  if (size_ == std::numeric_limits<int32_t>::max())
    base::throw_user_error("the data has more than {} documents; train on a part of it", size_);
  const auto at = static_cast<size_t>(size_ % kChunk);
  if (at == 0) chunks_.push_back(std::make_unique<Chunk>());
  chunks_.back()->begins[at] = tokens();
  chunks_.back()->targets[at] = static_cast<int32_t>(std::ranges::count_if(document_, is_target));
  if (has_encoder()) {
    if (at == 0) encoder_lengths_.push_back(std::make_unique<EncoderLengths>());
    (*encoder_lengths_.back())[at] = static_cast<int32_t>(encoder_ids.size());
    append_part(TokenStream::encoder, encoder_ids);
  }
  append_part(TokenStream::decoder, document_);
  ++size_;
}

void DocumentStore::append_label(int8_t label) {
  const auto at = static_cast<size_t>(size_ % kChunk);
  if (at == 0) labels_.push_back(std::make_unique<Labels>());
  (*labels_.back())[at] = label;
  checksum_.add(&label, sizeof(label));
}

void DocumentStore::append_part(TokenStream stream, std::span<const int32_t> words) {
  const auto length = static_cast<int64_t>(words.size());
  const auto bytes = static_cast<int64_t>(words.size_bytes());
  words_.append(words.data(), bytes);
  checksum_.add(&length, sizeof(length));
  checksum_.add(words.data(), bytes);
  tokens_[stream] += length;
  longest_[stream] = std::max(longest_[stream], static_cast<int32_t>(length));
}

void DocumentStore::finish() {
  words_.finish();
  document_ = std::vector<int32_t>();
}

int32_t DocumentStore::length(int64_t document, TokenStream stream) const {
  const int32_t of_encoder = encoder_length(document);
  if (stream == TokenStream::encoder) return of_encoder;
  return static_cast<int32_t>(begin(document + 1) - begin(document)) - of_encoder;
}

void DocumentStore::read(int64_t document, std::span<int32_t> words, TokenStream stream) const {
  SNUG_CHECK_EQ(words.size(), static_cast<size_t>(length(document, stream)));
  const int32_t before = stream == TokenStream::decoder ? encoder_length(document) : 0;
  words_.read_at((begin(document) + before) * static_cast<int64_t>(sizeof(int32_t)), words.data(),
                 static_cast<int64_t>(words.size_bytes()));
}

int64_t DocumentStore::host_bytes() const {
  return words_.host_bytes() +
         static_cast<int64_t>(
             chunks_.size() * sizeof(Chunk) + encoder_lengths_.size() * sizeof(EncoderLengths) +
             labels_.size() * sizeof(Labels) + document_.capacity() * sizeof(int32_t));
}

int32_t DocumentStore::most_in(const PerStream<int64_t>& tokens) const {
  int32_t most = std::numeric_limits<int32_t>::max();
  for (const TokenStream stream : streams())
    most = std::min(most, most_of_stream(stream, tokens[stream]));
  return most;
}

int32_t DocumentStore::most_of_stream(TokenStream stream, int64_t tokens) const {
  // There are few different lengths, since they are at most max_length.
  std::map<int32_t, int32_t> counts;
  for (int64_t i = 0; i < size(); ++i) ++counts[length(i, stream)];
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
