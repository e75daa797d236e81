#include "text/tokenizer/model/word_cache.h"

#include <algorithm>
#include <functional>

namespace snug::text {

WordCache::WordCache() : groups_(std::make_unique<std::array<Group, kGroups>>()) {}

bool WordCache::look_up(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.size() > kWordBytes || word.empty()) return false;
  const size_t hash = std::hash<std::string_view>{}(word);
  Group& group = (*groups_)[hash % kGroups];
  const std::lock_guard guard(group.lock);
  const Slot& slot = group.slots[hash / kGroups % kSlots];
  if (std::string_view(slot.word.data(), slot.size) != word) return false;
  ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
  return true;
}

void WordCache::store(std::string_view word, const int32_t* ids, size_t count) {
  if (word.size() > kWordBytes || word.empty() || count > kIds) return;
  const size_t hash = std::hash<std::string_view>{}(word);
  Group& group = (*groups_)[hash % kGroups];
  const std::lock_guard guard(group.lock);
  Slot& slot = group.slots[hash / kGroups % kSlots];
  slot.size = static_cast<uint8_t>(word.size());
  slot.count = static_cast<uint8_t>(count);
  std::copy(word.begin(), word.end(), slot.word.begin());
  std::copy(ids, ids + count, slot.ids.begin());
}

int64_t WordCache::host_bytes() { return sizeof(std::array<Group, kGroups>); }

}  // namespace snug::text
