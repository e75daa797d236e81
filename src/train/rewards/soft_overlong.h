// The penalty of answers that come near the longest length, before it is forbidden (DAPO, Yu et al.
// 2025, equation 13; TRL's get_soft_overlong_punishment).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/rewards/reward_function.h"

namespace snug::train {

// 0 up to `most` - `cache` tokens, from there to `most` linearly down to -1, and -1 beyond.
// Requires 0 < cache <= most.
double soft_overlong(int64_t tokens, int64_t most, int64_t cache);

class SoftOverlong : public RewardFunction {
 public:
  SoftOverlong(int64_t most, int64_t cache) : most_(most), cache_(cache) {}
  std::vector<double> judge(std::span<const RewardedAnswer> answers) override;

 private:
  int64_t most_;
  int64_t cache_;
};

}  // namespace snug::train
