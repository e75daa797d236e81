// Caches the ids of recent words. Its size is fixed: each word has one slot, in which newer words
// replace older ones; words or id lists too long for a slot are not cached. Any thread may look up
// and store; each lock covers a group of slots.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace snug::text {

class WordCache {
 public:
  WordCache();

  // If the ids of `word` are cached, appends them to `ids` and returns true.
  bool look_up(std::string_view word, std::vector<int32_t>& ids) const;
  void store(std::string_view word, const int32_t* ids, size_t count);

  static int64_t host_bytes();

  static constexpr size_t kWordBytes = 38;  // the longest word that is cached

 private:
  static constexpr size_t kGroups = 16;
  static constexpr size_t kSlots = 1024;  // per group
  static constexpr size_t kIds = 10;

  struct Slot {
    uint8_t size = 0;  // of the word; 0: the slot is free
    uint8_t count = 0;
    std::array<char, kWordBytes> word{};
    std::array<int32_t, kIds> ids{};
  };
  struct Group {
    std::mutex lock;
    std::array<Slot, kSlots> slots;
  };
  std::unique_ptr<std::array<Group, kGroups>> groups_;
};

}  // namespace snug::text
