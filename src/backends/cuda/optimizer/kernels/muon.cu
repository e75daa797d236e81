#include "backends/cuda/optimizer/kernels/muon.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/formulas/decayed_share.h"

namespace snug::backends::cuda {
namespace {

template <int kCount>
struct AdvanceMomentum {
  MuonMomentumRun run;
  __device__ void operator()(int64_t, int64_t item) const {
    const int64_t at = item * kCount;
    const float factor = *run.factor;
    if (factor != factor) return store(run.direction, at, Elements<kCount>{});
    const Elements<kCount> gradient = load<kCount>(run.gradient, at);
    Elements<kCount> momentum = load<kCount>(run.momentum, at);
    Elements<kCount> direction;
    for (int i = 0; i < kCount; ++i) {
      const float g = gradient.at[i] * factor;
      momentum.at[i] += (g - momentum.at[i]) * run.share;
      direction.at[i] = momentum.at[i] + (g - momentum.at[i]) * run.gradient_share;
    }
    store(run.momentum, at, momentum);
    store(run.direction, at, direction);
  }
};

template <int kCount>
struct DivideByNorm {
  NormalizeRun run;
  __device__ void operator()(int64_t, int64_t item) const {
    const int64_t at = item * kCount;
    const float norm = as_held(run.y.format, *run.norm);
    const float divisor = as_held(run.y.format, fmaxf(norm, run.epsilon));
    Elements<kCount> value = load<kCount>(run.x, at);
    for (int i = 0; i < kCount; ++i) value.at[i] /= divisor;
    store(run.y, at, value);
  }
};

template <int kCount>
struct StepMuon {
  MuonStepRun run;
  __device__ void operator()(int64_t, int64_t item) const {
    const int64_t at = item * kCount;
    const float factor = *run.factor;
    if (factor != factor) return;
    const float keep = decayed_share(*run.learning_rate, run.weight_decay);
    const float rate = *run.learning_rate * run.rate_scale;
    const Elements<kCount> direction = load<kCount>(run.direction, at);
    Elements<kCount> weight = load<kCount>(run.master, at);
    for (int i = 0; i < kCount; ++i)
      if (at + i < run.elements) weight.at[i] = weight.at[i] * keep - direction.at[i] * rate;
    store(run.master, at, weight);
    if (run.weight.data != run.master.data) store(run.weight, at, weight);
  }
};

}  // namespace

void advance_momentum(const MuonMomentumRun& run, cudaStream_t stream) {
  over_elements<AdvanceMomentum>(run, stream);
}

void normalize(const NormalizeRun& run, cudaStream_t stream) {
  over_elements<DivideByNorm>(run, stream);
}

void step_muon(const MuonStepRun& run, cudaStream_t stream) {
  over_elements<StepMuon>(run, stream);
}

}  // namespace snug::backends::cuda
