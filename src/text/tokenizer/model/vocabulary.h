// A compact two-way table of tokens and ids: all strings in one buffer, and an open-addressing hash
// table from string to id. Built once, then read from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug::text {

class Vocabulary {
 public:
  // Adds a token; returns false if the string or the id is already taken. Ids are 0 to 2^24 - 1.
  bool add(std::string_view token, int32_t id);

  // Frees the spare memory left from growing.
  void shrink();

  // The id of a token, or -1.
  int32_t find(std::string_view token) const;

  // The token with this id; empty if there is none (see contains).
  std::string_view token(int32_t id) const;
  bool contains(int32_t id) const;

  int64_t count() const { return count_; }                                  // number of tokens
  int32_t id_end() const { return static_cast<int32_t>(offsets_.size()); }  // largest id + 1
  int64_t host_bytes() const;

  static constexpr int32_t kMaxId = (1 << 24) - 1;

 private:
  struct Entry {
    uint32_t offset = 0;
    uint32_t size = kAbsent;
  };
  static constexpr uint32_t kAbsent = UINT32_MAX;

  size_t slot_of(std::string_view token) const;
  void grow();

  std::string bytes_;
  std::vector<Entry> offsets_;  // by id
  std::vector<int32_t> slots_;  // ids, -1 in free slots; a power of two in number
  int64_t count_ = 0;
};

}  // namespace snug::text
