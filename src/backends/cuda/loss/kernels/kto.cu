#include "backends/cuda/loss/kernels/kto.h"

#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/formulas/labelled_answer.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kLabelThreads = 256;
// The loss, the divergence, and sums of rewards and of log-probabilities for desirable and
// undesirable answers.
constexpr int kLabelSums = 6;

__device__ float ratio_of(const LabelRun& run, int64_t segment) {
  return run.policy[segment] - run.reference[segment];
}

__device__ LabelWeights<float> weights_of(const KtoRun& run) {
  return {run.beta, run.desirable_weight, run.undesirable_weight,
          divergence_of<float>(run.kl_sums[0], run.kl_sums[1])};
}

// One block, since a micro-batch has few examples.
__global__ void kl_sums_kernel(LabelRun run, float* written) {
  float sums[2] = {};
  for (int64_t e = threadIdx.x; e < run.examples; e += blockDim.x) {
    if (run.labels[e] == 0) continue;
    sums[0] += ratio_of(run, 2 * e + 1);
    sums[1] += 1.0F;
  }
  block_sums(sums);
  if (threadIdx.x != 0) return;
  written[0] = sums[0];
  written[1] = sums[1];
}

__global__ void kto_kernel(KtoRun run, const float* inverse_desirable,
                           const float* inverse_undesirable, float* measures, float* loss) {
  const LabelWeights<float> weights = weights_of(run);
  float sums[kLabelSums] = {};
  for (int64_t e = threadIdx.x; e < run.answers.examples; e += blockDim.x) {
    const int32_t label = run.answers.labels[e];
    if (label == 0) continue;
    const float ratio = ratio_of(run.answers, 2 * e);
    const float reward = run.beta * ratio;
    const float policy = run.answers.policy[2 * e];
    sums[0] += weights.loss(label, ratio);
    sums[1] += weights.kl;
    sums[2] += label > 0 ? reward : 0.0F;
    sums[3] += label > 0 ? 0.0F : reward;
    sums[4] += label > 0 ? policy : 0.0F;
    sums[5] += label > 0 ? 0.0F : policy;
  }
  block_sums(sums);
  if (threadIdx.x != 0) return;
  measures[0] = sums[2] * *inverse_desirable;
  measures[1] = sums[3] * *inverse_undesirable;
  measures[2] = measures[0] - measures[1];
  measures[3] = sums[4] * *inverse_desirable;
  measures[4] = sums[5] * *inverse_undesirable;
  measures[5] = sums[1] * *run.inverse_pairs;
  *loss = sums[0] * *run.inverse_pairs;
}

struct LabelGradient {
  KtoRun run;
  float* dpolicy;
  __device__ void operator()(int64_t, int64_t example) const {
    const int32_t label = run.answers.labels[example];
    const float ratio = ratio_of(run.answers, 2 * example);
    const float slope = label == 0 ? 0.0F : weights_of(run).slope(label, ratio);
    dpolicy[2 * example] = slope * *run.inverse_pairs;
    dpolicy[2 * example + 1] = 0.0F;
  }
};

}  // namespace

void kl_sums(const LabelRun& run, float* sums, cudaStream_t stream) {
  LaunchShape shape;
  shape.block.x = row_threads(run.examples, kLabelThreads);
  launch(kl_sums_kernel, shape, stream, run, sums);
}

void kto_loss(const KtoRun& run, const float* inverse_desirable, const float* inverse_undesirable,
              float* measures, float* loss, cudaStream_t stream) {
  LaunchShape shape;
  shape.block.x = row_threads(run.answers.examples, kLabelThreads);
  launch(kto_kernel, shape, stream, run, inverse_desirable, inverse_undesirable, measures, loss);
}

void kto_grad(const KtoRun& run, float* dpolicy, cudaStream_t stream) {
  over_items(LabelGradient{run, dpolicy}, 1, run.answers.examples, stream);
}

}  // namespace snug::backends::cuda
