#include "text/tokenizer/model/vocabulary.h"

#include <functional>

#include "base/error.h"

namespace snug::text {

size_t Vocabulary::slot_of(std::string_view token) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>{}(token)&mask;
  while (slots_[slot] >= 0 && this->token(slots_[slot]) != token) slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::grow() {
  std::vector<int32_t> old(slots_.empty() ? 64 : slots_.size() * 2, -1);
  old.swap(slots_);
  for (const int32_t id : old)
    if (id >= 0) slots_[slot_of(token(id))] = id;
}

bool Vocabulary::add(std::string_view token, int32_t id) {
  SNUG_CHECK(id >= 0 && id <= kMaxId, "id {}", id);
  // At most two thirds of the slots are used, so that probing is short.
  if ((count_ + 1) * 3 > static_cast<int64_t>(slots_.size()) * 2) grow();
  const size_t slot = slot_of(token);
  if (slots_[slot] >= 0 || contains(id)) return false;
  if (static_cast<size_t>(id) >= offsets_.size()) offsets_.resize(static_cast<size_t>(id) + 1);
  offsets_[id] = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(token.size())};
  bytes_ += token;
  slots_[slot] = id;
  ++count_;
  return true;
}

void Vocabulary::shrink() {
  bytes_.shrink_to_fit();
  offsets_.shrink_to_fit();
}

int32_t Vocabulary::find(std::string_view token) const {
  return slots_.empty() ? -1 : slots_[slot_of(token)];
}

std::string_view Vocabulary::token(int32_t id) const {
  if (!contains(id)) return {};
  return std::string_view(bytes_).substr(offsets_[id].offset, offsets_[id].size);
}

bool Vocabulary::contains(int32_t id) const {
  return id >= 0 && id < id_end() && offsets_[id].size != kAbsent;
}

int64_t Vocabulary::host_bytes() const {
  return static_cast<int64_t>(bytes_.capacity() + offsets_.capacity() * sizeof(Entry) +
                              slots_.capacity() * sizeof(int32_t));
}

}  // namespace snug::text
