// Memory of a tensor in guarded_run.h: poisoned at first, between two guards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace snug::backends::test {

inline constexpr int64_t kGuardBytes = 256;
inline constexpr int64_t kAlignment = 256;  // the largest that a backend asks for
// NaN in every float type: what is read beyond a tensor shows in what is made of it, even times
// zero.
inline constexpr std::byte kGuard{0xFF};
inline constexpr std::byte kPoison{0xFF};

// The bytes of one tensor that is no view: guard, tensor, guard, aligned. Of scratch, which may be
// large and whose bytes are nobody's, only the guards are watched.
class Allocation {
 public:
  enum class Holds { values, scratch, scratch_elsewhere };  // elsewhere: here are the guards alone

  Allocation(int64_t bytes, Holds holds)
      : holds_(holds), bytes_(bytes), memory_(static_cast<size_t>(here() + kMargin), kGuard) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data()) + kGuardBytes;
    start_ = static_cast<size_t>(kGuardBytes + (kAlignment - address % kAlignment) % kAlignment);
    std::fill_n(data(), here(), kPoison);
  }
  std::byte* data() { return memory_.data() + start_; }
  size_t start() const { return start_; }
  int64_t bytes() const { return bytes_; }
  bool is_scratch() const { return holds_ != Holds::values; }
  bool is_elsewhere() const { return holds_ == Holds::scratch_elsewhere; }

  // What may not change unseen.
  std::vector<std::byte> watched() const {
    if (!is_scratch()) return memory_;
    const auto begin = memory_.begin() + static_cast<long>(start_);
    std::vector<std::byte> guards(memory_.begin(), begin);
    guards.insert(guards.end(), begin + here(), memory_.end());
    return guards;
  }
  // Whether something watched is not as it was.
  bool has_changed(const std::vector<std::byte>& was) const {
    if (is_scratch()) return was != watched();
    return std::memcmp(was.data(), memory_.data(), memory_.size()) != 0;
  }
  // Back to what was watched; scratch is as at the beginning.
  void restore(const std::vector<std::byte>& watched) {
    if (!is_scratch()) {
      std::copy(watched.begin(), watched.end(), memory_.begin());
      return;
    }
    const auto end_of_front = watched.begin() + static_cast<long>(start_);
    std::copy(watched.begin(), end_of_front, memory_.begin());
    std::fill_n(data(), here(), kPoison);
    std::copy(end_of_front, watched.end(), data() + here());
  }
  // Where a watched byte lies, from the tensor's first.
  int64_t position(int64_t watched) const {
    const int64_t from_start = watched - static_cast<int64_t>(start_);
    return is_scratch() && from_start >= 0 ? from_start + bytes_ : from_start;
  }
  // The tensor between its guards, and the guards themselves.
  std::span<std::byte> values() { return {data(), static_cast<size_t>(here())}; }
  std::span<std::byte> front() { return {data() - kGuardBytes, size_t{kGuardBytes}}; }
  std::span<std::byte> back() { return {data() + here(), size_t{kGuardBytes}}; }

 private:
  static constexpr int64_t kMargin = 2 * kGuardBytes + kAlignment;
  int64_t here() const { return is_elsewhere() ? 0 : bytes_; }

  Holds holds_;
  int64_t bytes_;
  std::vector<std::byte> memory_;
  size_t start_ = 0;
};

}  // namespace snug::backends::test
