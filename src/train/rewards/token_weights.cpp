#include "train/rewards/token_weights.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace snug::train {
namespace {

// At least 1, since it divides.
double sum_of(std::span<const int64_t> counts) {
  const auto sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  return static_cast<double>(std::max<int64_t>(sum, 1));
}

}  // namespace

std::vector<double> token_weights(AnswerLoss loss, const StepAnswers& answers) {
  const std::span<const int64_t> learned = answers.learned;
  const auto per_batch = static_cast<size_t>(answers.per_micro_batch);
  SNUG_CHECK(per_batch > 0 && learned.size() % per_batch == 0, "{} answers by {} in a micro-batch",
             learned.size(), per_batch);
  const auto count = static_cast<double>(learned.size());
  const double step_tokens = answers.step_tokens > 0 ? answers.step_tokens : sum_of(learned);
  std::vector<double> weights(learned.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    switch (loss) {
      case AnswerLoss::grpo:
        weights[i] = 1.0 / (count * sum_of(learned.subspan(i, 1)));
        break;
      case AnswerLoss::bnpo:
        weights[i] = static_cast<double>(per_batch) /
                     (count * sum_of(learned.subspan(i / per_batch * per_batch, per_batch)));
        break;
      case AnswerLoss::dr_grpo:
        weights[i] = 1.0 / (count * static_cast<double>(answers.max_completion_length));
        break;
      case AnswerLoss::dapo:
        weights[i] = 1.0 / step_tokens;
        break;
    }
  }
  return weights;
}

}  // namespace snug::train
