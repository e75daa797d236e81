#include "backends/cuda/loss/kernels/orpo.h"

#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/formulas/answer_odds.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kOddsThreads = 256;
// The sums for the measures and the loss.
constexpr int kOddsSums = 9;
constexpr int kNllSum = 6;
constexpr int kRatioSum = 7;

__device__ bool has_odds(const OrpoRun& run, int64_t pair) {
  return run.bounds[4 * pair] < run.bounds[4 * pair + 1];
}

__device__ AnswerOdds<float> odds_of(const OrpoRun& run, int64_t pair) {
  return answer_odds<float>(run.policy[2 * pair], run.policy[2 * pair + 1], run.bounds + 4 * pair);
}

// One block, since a micro-batch has few pairs.
__global__ void orpo_kernel(OrpoRun run, const float* nll, float* measures, float* loss) {
  float sums[kOddsSums] = {};
  for (int64_t p = threadIdx.x; p < run.pairs; p += blockDim.x) {
    if (!has_odds(run, p)) continue;
    const AnswerOdds<float> odds = odds_of(run, p);
    sums[0] += run.beta * odds.chosen;
    sums[1] += run.beta * odds.rejected;
    sums[2] += odds.chosen > odds.rejected ? 1.0F : 0.0F;
    sums[3] += run.beta * (odds.chosen - odds.rejected);
    sums[4] += odds.chosen;
    sums[5] += odds.rejected;
    sums[kNllSum] += nll[2 * p];
    sums[kRatioSum] -= minus_log_sigmoid(odds.log_odds());
    sums[8] += odds.log_odds();
  }
  block_sums(sums);
  if (threadIdx.x != 0) return;
  for (int i = 0; i < kOddsSums; ++i)
    measures[i] = sums[i] * (i == kNllSum ? *run.inverse_tokens : *run.inverse_pairs);
  *loss = measures[kNllSum] - run.beta * measures[kRatioSum];
}

struct OddsGradient {
  OrpoRun run;
  float* dpolicy;
  float* dnll;
  __device__ void operator()(int64_t, int64_t pair) const {
    float chosen = 0.0F;
    float rejected = 0.0F;
    float nll = 0.0F;
    if (has_odds(run, pair)) {
      const AnswerOdds<float> odds = odds_of(run, pair);
      const int32_t* bounds = run.bounds + 4 * pair;
      const float slope = run.beta * *run.inverse_pairs * odds.slope();
      chosen = -slope * odds.odds_slope(odds.chosen) / tokens(bounds);
      rejected = slope * odds.odds_slope(odds.rejected) / tokens(bounds + 2);
      nll = *run.inverse_tokens;
    }
    dpolicy[2 * pair] = chosen;
    dpolicy[2 * pair + 1] = rejected;
    dnll[2 * pair] = nll;
    dnll[2 * pair + 1] = 0.0F;
  }
  static __device__ float tokens(const int32_t* bounds) {
    return static_cast<float>(bounds[1] - bounds[0] > 1 ? bounds[1] - bounds[0] - 1 : 1);
  }
};

}  // namespace

void orpo_loss(const OrpoRun& run, const float* nll, float* measures, float* loss,
               cudaStream_t stream) {
  LaunchShape shape;
  shape.block.x = row_threads(run.pairs, kOddsThreads);
  launch(orpo_kernel, shape, stream, run, nll, measures, loss);
}

void orpo_grad(const OrpoRun& run, float* dpolicy, float* dnll, cudaStream_t stream) {
  over_items(OddsGradient{run, dpolicy, dnll}, 1, run.pairs, stream);
}

}  // namespace snug::backends::cuda
