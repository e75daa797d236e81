#include "backends/cuda/loss/kernels/grpo.h"

#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/formulas/clipped_ratio.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kAnswerThreads = 256;
constexpr int kTermsOfAnswer = 4;  // kRewardedTermCount

__device__ ClippedRatio<float> ratio_of(const GrpoRun& run) {
  return {1.0F - run.epsilon, 1.0F + run.epsilon_high, run.delta};
}

__device__ float log_ratio_of(const GrpoRun& run, int32_t token) {
  return run.old == nullptr ? 0.0F : run.policy[token] - run.old[token];
}

// What kl is multiplied by.
__device__ float correction_of(const GrpoRun& run, float log_ratio) {
  return run.corrected ? std::exp(log_ratio) : 1.0F;
}

// What a ratio of the whole segment is made of: the mean of the log-ratios, the number of learned
// tokens (at least 1), and the sums of their weights and of their weighted divergences, before
// these are multiplied by the ratio. All threads of the block take part.
struct SegmentRatio {
  float log_ratio;
  float count;
  float weight;
  float divergence;
};

__device__ SegmentRatio segment_ratio(const GrpoRun& run, int32_t begin, int32_t end) {
  float sums[4] = {};
  for (int32_t t = begin + static_cast<int32_t>(threadIdx.x); t < end;
       t += static_cast<int32_t>(blockDim.x)) {
    if (run.weights[t] == 0.0F) continue;
    sums[0] += log_ratio_of(run, t);
    sums[1] += 1.0F;
    sums[2] += run.weights[t];
    if (run.reference != nullptr)
      sums[3] += run.weights[t] * token_divergence(run.reference[t] - run.policy[t]);
  }
  block_sums(sums);
  const float count = sums[1] > 1.0F ? sums[1] : 1.0F;
  return {sums[0] / count, count, sums[2], sums[3]};
}

// One block per segment.
__global__ void grpo_terms_kernel(GrpoRun run, GrpoResults results) {
  const int64_t s = blockIdx.x;
  const int32_t begin = run.bounds[2 * s];
  const int32_t end = run.bounds[2 * s + 1];
  const ClippedRatio<float> ratio = ratio_of(run);
  const float advantage = run.advantages[s];
  SegmentRatio whole{0.0F, 1.0F, 0.0F, 0.0F};
  if (run.sequence) whole = segment_ratio(run, begin, end);
  float terms[kTermsOfAnswer] = {};
  for (int32_t t = begin + static_cast<int32_t>(threadIdx.x); t < end;
       t += static_cast<int32_t>(blockDim.x)) {
    if (run.weights[t] == 0.0F) continue;
    const float log_ratio = run.sequence ? whole.log_ratio : log_ratio_of(run, t);
    float loss = -ratio.gain(log_ratio, advantage);
    if (run.reference != nullptr) {
      const float divergence =
          correction_of(run, log_ratio) * token_divergence(run.reference[t] - run.policy[t]);
      loss += run.beta * divergence;
      terms[3] += divergence;
    }
    terms[0] += run.weights[t] * loss;
    terms[1] += ratio.is_low(log_ratio, advantage) ? 1.0F : 0.0F;
    terms[2] += ratio.is_high(log_ratio, advantage) ? 1.0F : 0.0F;
  }
  block_sums(terms);
  if (threadIdx.x != 0) return;
  // With a ratio of the segment all its tokens are clipped or none, and it counts once.
  const float inverse =
      run.sequence ? *results.inverse_sequences / whole.count : *results.inverse_tokens;
  float* written = results.terms + s * kTermsOfAnswer;
  written[0] = terms[0];
  written[1] = terms[1] * inverse;
  written[2] = terms[2] * inverse;
  written[3] = terms[3] * *results.inverse_tokens;
}

// One block.
__global__ void grpo_sums_kernel(GrpoRun run, GrpoResults results) {
  float sums[kTermsOfAnswer] = {};
  for (int64_t s = threadIdx.x; s < run.segments; s += blockDim.x)
    for (int i = 0; i < kTermsOfAnswer; ++i) sums[i] += results.terms[s * kTermsOfAnswer + i];
  block_sums(sums);
  if (threadIdx.x != 0) return;
  results.measures[0] = sums[1];
  results.measures[1] = sums[2];
  results.measures[2] = sums[1] + sums[2];
  results.measures[3] = run.reference != nullptr ? sums[3] : nanf("");
  *results.loss = sums[0];
}

struct NothingLearned {
  float* dpolicy;
  __device__ void operator()(int64_t, int64_t token) const { dpolicy[token] = 0.0F; }
};

// One block per segment.
__global__ void grpo_grad_kernel(GrpoRun run, float* dpolicy) {
  const int64_t s = blockIdx.x;
  const int32_t begin = run.bounds[2 * s];
  const int32_t end = run.bounds[2 * s + 1];
  const ClippedRatio<float> ratio = ratio_of(run);
  const float advantage = run.advantages[s];
  SegmentRatio whole{0.0F, 1.0F, 0.0F, 0.0F};
  if (run.sequence) whole = segment_ratio(run, begin, end);
  // What a ratio of the segment multiplies counts for all of its tokens, and each of these moves
  // the ratio by its share.
  float of_segment = -ratio.slope(whole.log_ratio, advantage) * whole.weight;
  if (run.corrected) of_segment += run.beta * std::exp(whole.log_ratio) * whole.divergence;
  for (int32_t t = begin + static_cast<int32_t>(threadIdx.x); t < end;
       t += static_cast<int32_t>(blockDim.x)) {
    const float weight = run.weights[t];
    if (weight == 0.0F) continue;
    const float log_ratio = run.sequence ? whole.log_ratio : log_ratio_of(run, t);
    float slope =
        run.sequence ? of_segment / whole.count : -weight * ratio.slope(log_ratio, advantage);
    if (run.reference != nullptr) {
      const float difference = run.reference[t] - run.policy[t];
      float pull = token_divergence_slope(difference);
      if (run.corrected && !run.sequence) pull += token_divergence(difference);
      slope += weight * run.beta * correction_of(run, log_ratio) * pull;
    }
    dpolicy[t] = slope;
  }
}

LaunchShape a_block_for_each(int64_t segments) {
  LaunchShape shape;
  shape.block.x = kAnswerThreads;
  shape.grid.x = static_cast<uint32_t>(segments);
  return shape;
}

}  // namespace

void grpo_loss(const GrpoRun& run, const GrpoResults& results, cudaStream_t stream) {
  launch(grpo_terms_kernel, a_block_for_each(run.segments), stream, run, results);
  launch(grpo_sums_kernel, a_block_for_each(1), stream, run, results);
}

void grpo_grad(const GrpoRun& run, float* dpolicy, int64_t tokens, cudaStream_t stream) {
  over_items(NothingLearned{dpolicy}, 1, tokens, stream);
  launch(grpo_grad_kernel, a_block_for_each(run.segments), stream, run, dpolicy);
}

}  // namespace snug::backends::cuda
