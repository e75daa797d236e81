#include "backends/cuda/loss/kernels/loss_scale.h"

#include "backends/cuda/kernels/over_items.cuh"
#include "program/kinds/loss/loss_scale_counts.h"

namespace snug::backends::cuda {
namespace {

__device__ bool is_finite(float x) { return (__float_as_uint(x) & 0x7f800000U) != 0x7f800000U; }

struct ScaleNumbers {
  ScaleByRun run;
  __device__ void operator()(int64_t, int64_t i) const {
    run.y[i] = run.divides ? run.x[i] / *run.scale : run.x[i] * *run.scale;
  }
};

// One thread does after_step of backends/formulas/loss_scale_step.h.
struct ScaledClip {
  ScaledClipRun run;
  __device__ void operator()(int64_t, int64_t) const {
    const float scale = *run.scale;
    const float norm = *run.scaled_norm / scale;
    float factor = 1.0F;
    if (run.max_norm > 0.0F) factor = fminf(1.0F, run.max_norm / (norm + 1e-6F));
    *run.norm = norm;
    *run.factor = is_finite(norm) ? factor / scale : __uint_as_float(0x7fc00000U);
    if (is_finite(norm))
      count_finite(scale);
    else
      count_skipped(scale);
  }

  __device__ void count_skipped(float scale) const {
    run.counts[program::kFiniteSteps] = 0.0F;
    run.counts[program::kSkippedSteps] += 1.0F;
    if (run.window == 0.0F) return;
    if (run.counts[program::kToleratedSteps] + 1.0F < run.hysteresis) {
      run.counts[program::kToleratedSteps] += 1.0F;
      return;
    }
    const float lower = scale / 2.0F;
    *run.scale = lower < run.least ? fminf(scale, run.least) : lower;
  }

  __device__ void count_finite(float scale) const {
    run.counts[program::kSkippedSteps] = 0.0F;
    if (run.window == 0.0F) return;
    run.counts[program::kFiniteSteps] += 1.0F;
    if (run.counts[program::kFiniteSteps] < run.window) return;
    run.counts[program::kFiniteSteps] = 0.0F;
    run.counts[program::kToleratedSteps] = 0.0F;
    if (is_finite(scale * 2.0F)) *run.scale = scale * 2.0F;
  }
};

}  // namespace

void scale_by(const ScaleByRun& run, cudaStream_t stream) {
  over_items(ScaleNumbers{run}, 1, run.count, stream);
}

void scaled_clip_factor(const ScaledClipRun& run, cudaStream_t stream) {
  over_items(ScaledClip{run}, 1, 1, stream);
}

}  // namespace snug::backends::cuda
