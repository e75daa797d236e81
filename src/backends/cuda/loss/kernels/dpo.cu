#include "backends/cuda/loss/kernels/dpo.h"

#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/formulas/preference_loss.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kPairThreads = 256;
// The sums for the measures and the loss.
constexpr int kSums = 7;

__device__ bool is_there(const DpoRun& run, int64_t pair) {
  return run.bounds[4 * pair] < run.bounds[4 * pair + 1];
}

__device__ float tokens_of(const DpoRun& run, int64_t segment) {
  if (run.answers == nullptr) return 1.0F;
  const int32_t tokens = run.answers[2 * segment + 1] - run.answers[2 * segment] - 1;
  return tokens > 1 ? static_cast<float>(tokens) : 1.0F;
}

__device__ float compared_with(const DpoRun& run, int64_t segment) {
  return run.reference == nullptr ? 0.0F : run.reference[segment];
}

__device__ AnswerPair<float> pair_of(const DpoRun& run, int64_t pair) {
  return {run.policy[2 * pair],         run.policy[2 * pair + 1],
          compared_with(run, 2 * pair), compared_with(run, 2 * pair + 1),
          tokens_of(run, 2 * pair),     tokens_of(run, 2 * pair + 1)};
}

// In fp64, since some losses are differences that nearly cancel where they are small.
__device__ PairLoss<float> loss_of(const DpoRun& run, const AnswerPair<float>& pair) {
  const AnswerPair<double> compared = pair.in_double();
  const PairLoss<double> loss =
      pair_loss<double>({run.form, run.beta, run.label_smoothing, run.target_margin},
                        compared.chosen_score(), compared.rejected_score());
  return {static_cast<float>(loss.value), static_cast<float>(loss.chosen_slope),
          static_cast<float>(loss.rejected_slope)};
}

// One block, since a micro-batch has few pairs.
__global__ void dpo_kernel(DpoRun run, float* measures, float* loss) {
  float sums[kSums] = {};
  for (int64_t p = threadIdx.x; p < run.pairs; p += blockDim.x) {
    if (!is_there(run, p)) continue;
    const AnswerPair<float> answers = pair_of(run, p);
    const AnswerPair<float> pair = run.reference == nullptr ? answers.compared() : answers;
    const float margin = pair.margin(run.beta);
    sums[0] += pair.chosen_reward(run.beta);
    sums[1] += pair.rejected_reward(run.beta);
    sums[2] += margin > 0.0F ? 1.0F : 0.0F;
    sums[3] += margin;
    sums[4] += pair.chosen;
    sums[5] += pair.rejected;
    sums[6] += loss_of(run, answers).value;
  }
  block_sums(sums);
  if (threadIdx.x != 0) return;
  for (int i = 0; i + 1 < kSums; ++i) measures[i] = sums[i] * *run.inverse_pairs;
  *loss = sums[kSums - 1] * *run.inverse_pairs;
}

struct PairGradient {
  DpoRun run;
  float* dpolicy;
  __device__ void operator()(int64_t, int64_t pair) const {
    float chosen = 0.0F;
    float rejected = 0.0F;
    if (is_there(run, pair)) {
      const AnswerPair<float> answers = pair_of(run, pair);
      const PairLoss<float> loss = loss_of(run, answers);
      chosen = loss.chosen_slope / answers.chosen_tokens * *run.inverse_pairs;
      rejected = loss.rejected_slope / answers.rejected_tokens * *run.inverse_pairs;
    }
    dpolicy[2 * pair] = chosen;
    dpolicy[2 * pair + 1] = rejected;
  }
};

}  // namespace

void dpo_loss(const DpoRun& run, float* measures, float* loss, cudaStream_t stream) {
  LaunchShape shape;
  shape.block.x = row_threads(run.pairs, kPairThreads);
  launch(dpo_kernel, shape, stream, run, measures, loss);
}

void dpo_grad(const DpoRun& run, float* dpolicy, cudaStream_t stream) {
  over_items(PairGradient{run, dpolicy}, 1, run.pairs, stream);
}

}  // namespace snug::backends::cuda
