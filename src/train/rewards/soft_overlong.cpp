#include "train/rewards/soft_overlong.h"

namespace snug::train {

double soft_overlong(int64_t tokens, int64_t most, int64_t cache) {
  if (tokens <= most - cache) return 0;
  if (tokens > most) return -1;
  return static_cast<double>(most - cache - tokens) / static_cast<double>(cache);
}

std::vector<double> SoftOverlong::judge(std::span<const RewardedAnswer> answers) {
  std::vector<double> rewards;
  rewards.reserve(answers.size());
  for (const RewardedAnswer& answer : answers)
    rewards.push_back(soft_overlong(answer.tokens, most_, cache_));
  return rewards;
}

}  // namespace snug::train
