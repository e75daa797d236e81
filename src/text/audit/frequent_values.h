// The values that are most of many, in bounded memory: the counts of Misra and Gries ("Finding
// repeated elements", 1982). A count is too small by at most one in kHeld of all, never too large.
// A value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace snug::text {

class FrequentValues {
 public:
  struct Entry {
    uint64_t value = 0;
    int64_t count = 0;
    int64_t document = 0;  // one that has it
  };

  void add(uint64_t value, int64_t document);
  int64_t size() const { return size_; }  // how many were added
  // The one with the largest count.
  Entry most() const;

  static constexpr size_t kHeld = 64;

 private:
  std::array<Entry, kHeld> entries_{};  // a count of 0: the place is free
  int64_t size_ = 0;
};

}  // namespace snug::text
