// One function that rewards answers.
#pragma once

#include <span>
#include <vector>

#include "train/rewards/rewarded_answer.h"

namespace snug::train {

class RewardFunction {
 public:
  RewardFunction() = default;
  virtual ~RewardFunction() = default;
  RewardFunction(const RewardFunction&) = delete;
  RewardFunction& operator=(const RewardFunction&) = delete;
  RewardFunction(RewardFunction&&) = delete;
  RewardFunction& operator=(RewardFunction&&) = delete;

  // Throws UserError, at the record, where answers to it cannot be judged.
  virtual void check(const RewardedRecord& /*record*/) const {}
  // (answers); no number where it says nothing.
  virtual std::vector<double> judge(std::span<const RewardedAnswer> answers) = 0;
};

}  // namespace snug::train
