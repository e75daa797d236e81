#include "engine/penalties.h"

#include <utility>

namespace snug::engine {
namespace {

void penalize_once(std::span<const float> logits, std::span<const int32_t> ids, float penalty,
                   std::span<float> result) {
  for (const int32_t id : ids) {
    const auto at = static_cast<size_t>(id);
    result[at] = logits[at] < 0 ? logits[at] * penalty : logits[at] / penalty;
  }
}

}  // namespace

std::span<const float> Penalties::applied(std::span<const float> logits, const SeenTokens& seen) {
  if (!options_.penalizes()) return logits;
  result_.assign(logits.begin(), logits.end());
  if (options_.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(options_.repetition_penalty);
    penalize_once(logits, seen.read, penalty, result_);
    penalize_once(logits, seen.answer, penalty, result_);
  }
  if (options_.frequency_penalty != 0 || options_.presence_penalty != 0) subtract(seen.answer);
  return result_;
}

void Penalties::subtract(std::span<const int32_t> answer) {
  const auto frequency = static_cast<float>(options_.frequency_penalty);
  const auto presence = static_cast<float>(options_.presence_penalty);
  counts_.resize(result_.size());
  for (const int32_t id : answer) ++counts_[static_cast<size_t>(id)];
  for (const int32_t id : answer) {
    const auto at = static_cast<size_t>(id);
    const int32_t count = std::exchange(counts_[at], 0);
    if (count == 0) continue;
    result_[at] -= frequency * static_cast<float>(count);
    result_[at] -= presence;
  }
}

}  // namespace snug::engine
