// A length of time as a clock shows it: 0:07, 12:30, 3:05:00.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace snug::base {

// Minutes and seconds, and hours where there are any. Makes no heap allocation.
class ClockText {
 public:
  explicit ClockText(double seconds) {
    constexpr double kMostSeconds = 1e12;
    const double bounded = seconds > 0 ? std::min(seconds, kMostSeconds) : 0;
    const int64_t whole = std::llround(bounded);
    const int64_t hours = whole / 3600;
    const int64_t minutes = whole / 60 % 60;
    char* const end =
        hours > 0
            ? fmt::format_to_n(text_.data(), text_.size(), "{}:{:02}:{:02}", hours, minutes,
                               whole % 60)
                  .out
            : fmt::format_to_n(text_.data(), text_.size(), "{}:{:02}", minutes, whole % 60).out;
    size_ = static_cast<size_t>(end - text_.data());
  }
  std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, 32> text_{};
  size_t size_ = 0;
};

}  // namespace snug::base
