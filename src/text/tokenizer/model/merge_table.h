// The merges of a byte-pair encoding: which pair of tokens becomes which token, and with which
// rank. Built once, then read from any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace snug::text {

struct Merge {
  int32_t rank = -1;  // lower ranks merge first; -1: the pair does not merge
  int32_t result = -1;
};

class MergeTable {
 public:
  // Reserves room for `count` merges; must be called before the first set.
  void reserve(size_t count) {
    slots_.assign(std::bit_ceil(count + count / 2 + 1), {});
    shift_ = 64 - std::countr_zero(slots_.size());
  }

  // If a pair is set twice, the later merge replaces the earlier one.
  void set(int32_t left, int32_t right, Merge merge) {
    Slot& slot = slots_[slot_of(key_of(left, right))];
    slot = {key_of(left, right), merge};
  }

  Merge find(int32_t left, int32_t right) const {
    return slots_[slot_of(key_of(left, right))].merge;
  }

  int64_t host_bytes() const { return static_cast<int64_t>(slots_.capacity() * sizeof(Slot)); }

 private:
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };
  static constexpr uint64_t kFree = UINT64_MAX;  // ids are not negative, so no pair has this key

  static uint64_t key_of(int32_t left, int32_t right) {
    return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
  }
  // Fibonacci hashing with linear probing.
  size_t slot_of(uint64_t key) const {
    size_t slot = shift_ == 64 ? 0 : (key * 0x9E3779B97F4A7C15ULL) >> shift_;
    while (slots_[slot].key != kFree && slots_[slot].key != key)
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1);
  int shift_ = 64;
};

}  // namespace snug::text
