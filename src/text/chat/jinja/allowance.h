// What all renderings of one record may use together. A record is rendered many times (to see what
// is left out, and where answers begin and end), and each rendering has bounds of its own
// (meter.h), so that these together would bound nothing.
//
// The first one on a thread counts for as long as it lives; those within it are the same. Once it
// is spent, every rendering fails, and who goes on after a failed rendering asks is_spent first.
#pragma once

#include <cstdint>

#include "text/chat/jinja/limits.h"

namespace snug::text::jinja {

class Allowance {
 public:
  // Bytes are given back after each rendering, so that many renderings may ask for more in all than
  // a machine has; processor time is that of one rendering.
  static constexpr int64_t kSteps = 5 * kMaxSteps;
  static constexpr int64_t kBytes = 64 * kMaxBytes;
  static constexpr int64_t kNanoseconds = kMaxSeconds * 1'000'000'000;

  // `steps` are for tests.
  explicit Allowance(int64_t steps = kSteps);
  ~Allowance();
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  // Of this thread; false where there is none.
  static bool is_spent();

 private:
  bool is_outer_;
};

}  // namespace snug::text::jinja
