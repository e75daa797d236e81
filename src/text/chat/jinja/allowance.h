// The limit of what all renderings of one record may use together. A record is rendered many times,
// to see what is left out, and where answers begin and end. Each rendering has its own limits
// (meter.h), but these alone would not limit their sum.
//
// The outermost Allowance on a thread applies as long as it lives; nested ones have no effect. Once
// it is spent, every rendering fails, and code that continues after a failed rendering must check
// is_spent first.
#pragma once

#include <cstdint>

#include "text/chat/jinja/limits.h"

namespace snug::text::jinja {

class Allowance {
 public:
  // Limits: steps stand for processor time, of which all renderings get five times that of one. The
  // limit for bytes is higher, since memory is freed after each rendering.
  static constexpr int64_t kSteps = 5 * kMaxSteps;
  static constexpr int64_t kBytes = 64 * kMaxBytes;
  static constexpr int64_t kNanoseconds = kMaxSeconds * 1'000'000'000;

  // `steps`: another limit, for tests.
  explicit Allowance(int64_t steps = kSteps);
  ~Allowance();
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  // Whether this thread's allowance is spent; false if there is none.
  static bool is_spent();

 private:
  bool is_outer_;
};

}  // namespace snug::text::jinja
