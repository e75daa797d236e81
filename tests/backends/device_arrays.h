// Arrays in a backend's device memory, which the host may not reach, each between guards.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "backends/backend.h"

namespace snug::backends::test {

template <typename T>
class DeviceArray {
 public:
  DeviceArray(Backend& backend, const std::vector<T>& values)
      : backend_(backend),
        count_(values.size()),
        arena_(backend.allocate(program::Space::device, bytes() + 2 * kGuard)) {
    std::vector<std::byte> all(static_cast<size_t>(arena_->bytes()), kPattern);
    if (count_ > 0) std::memcpy(all.data() + kGuard, values.data(), count_ * sizeof(T));
    backend.copy(arena_->data(), all.data(), arena_->bytes());
  }
  // Every byte 0xff: NaN in every float type.
  DeviceArray(Backend& backend, int64_t count) : DeviceArray(backend, poison(count)) {}

  T* data() const { return reinterpret_cast<T*>(arena_->data() + kGuard); }
  Buffer buffer(program::DType dtype, const program::Shape& shape) const {
    return {arena_->data() + kGuard, dtype, shape, program::dense_strides(shape)};
  }
  // What it holds now; the guards must be as they were.
  std::vector<T> values() const {
    std::vector<std::byte> all(static_cast<size_t>(arena_->bytes()));
    backend_.copy(all.data(), arena_->data(), arena_->bytes());
    for (int64_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(all[static_cast<size_t>(i)], kPattern) << "before the array";
      EXPECT_EQ(all[static_cast<size_t>(kGuard + bytes() + i)], kPattern) << "after the array";
    }
    std::vector<T> values(count_);
    if (count_ > 0) std::memcpy(values.data(), all.data() + kGuard, count_ * sizeof(T));
    return values;
  }

 private:
  static constexpr int64_t kGuard = 256;
  static constexpr std::byte kPattern{0xa5};

  static std::vector<T> poison(int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    if (count > 0) std::memset(values.data(), 0xff, values.size() * sizeof(T));
    return values;
  }
  int64_t bytes() const { return static_cast<int64_t>(count_ * sizeof(T)); }

  Backend& backend_;
  size_t count_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace snug::backends::test
