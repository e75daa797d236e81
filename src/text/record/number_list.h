// A list of integers of any length, of which 512 KiB at most are held: what is longer lies in a
// file (base/spill_file.h) and is read in windows. Filled, then read, by one thread; in order it
// reads fast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/spill_file.h"

namespace snug::text {

class NumberList {
 public:
  void add(int64_t number);

  size_t size() const { return begin_ + window_.size() > size_ ? begin_ + window_.size() : size_; }
  bool empty() const { return size() == 0; }

  // Requires i < size(); nothing is added any more.
  int64_t operator[](size_t i);

 private:
  void spill();

  static constexpr size_t kWindow = size_t{32} << 10;  // numbers

  base::SpillFile spilled_;
  std::vector<int64_t> window_;  // the numbers from begin_ on
  size_t begin_ = 0;
  size_t size_ = 0;  // numbers spilled
};

}  // namespace snug::text
