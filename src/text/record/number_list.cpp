#include "text/record/number_list.h"

#include <algorithm>

#include "base/error.h"

namespace snug::text {

void NumberList::spill() {
  spilled_.append(window_.data(), static_cast<int64_t>(window_.size() * sizeof(int64_t)));
  size_ += window_.size();
  begin_ = size_;
  window_.clear();
}

void NumberList::add(int64_t number) {
  if (window_.size() == kWindow) spill();
  window_.push_back(number);
}

int64_t NumberList::operator[](size_t i) {
  if (i - begin_ < window_.size()) return window_[i - begin_];
  if (begin_ == size_) spill();
  SNUG_CHECK(i < size_, "number {} of {}", i, size_);
  begin_ = i - i % kWindow;
  window_.resize(std::min(kWindow, size_ - begin_));
  spilled_.read_at(static_cast<int64_t>(begin_ * sizeof(int64_t)), window_.data(),
                   static_cast<int64_t>(window_.size() * sizeof(int64_t)));
  return window_[i - begin_];
}

}  // namespace snug::text
