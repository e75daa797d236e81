#include "backends/cuda/kernels/optimizer.h"

#include "backends/cuda/kernels/adamw_step.cuh"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int64_t kItemsPerThread = 4;

// Planes of random_bits.h.
enum Plane : uint32_t { kWeight = 0, kFirstMoment = 1, kSecondMoment = 2 };

template <int kCount>
__global__ void sum_squares_kernel(SquaresRun run) {
  const int64_t chunks = ceil_div(run.walk.columns, kNormElements);
  const int64_t row = blockIdx.x / chunks;
  const int64_t begin = blockIdx.x % chunks * kNormElements;
  const int64_t end =
      begin + kNormElements < run.walk.columns ? begin + kNormElements : run.walk.columns;
  float sum = 0.0F;
  for (int64_t column = begin + threadIdx.x * kCount; column < end; column += kThreads * kCount) {
    const Elements<kCount> x = load<kCount>(run.x, row * run.x.stride + column);
    for (int i = 0; i < kCount; ++i) sum += x.at[i] * x.at[i];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) run.partials[blockIdx.x] = sum;
}

// One block: each thread adds every kThreads-th partial, then the first adds the threads'.
__global__ void finish_norm_kernel(const float* partials, int64_t count, float* norm) {
  __shared__ double sums[kThreads];
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += static_cast<double>(partials[i]);
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (uint32_t i = 1; i < kThreads; ++i) sum += sums[i];
  *norm = static_cast<float>(sqrt(sum));
}

struct ClipFactor {
  const float* norm;
  float max_norm;
  float* factor;
  __device__ void operator()(int64_t, int64_t) const {
    const bool finite = (__float_as_uint(*norm) & 0x7f800000U) != 0x7f800000U;
    float value = 1.0F;
    if (max_norm > 0.0F) value = fminf(1.0F, max_norm / (*norm + 1e-6F));
    *factor = finite ? value : __uint_as_float(0x7fc00000U);
  }
};

struct State {
  float weight, first, second;
};

// torch's order: decay, moments, step.
__device__ State advance(const AdamWStep& step, const AdamWConstants& constants, State state,
                         float gradient) {
  const float g = gradient * step.factor;
  state.first = constants.beta1 * state.first + (1.0F - constants.beta1) * g;
  state.second = constants.beta2 * state.second + (1.0F - constants.beta2) * g * g;
  const float root = sqrtf(state.second / step.second_correction) + constants.epsilon;
  const float change = step.learning_rate * (state.first / step.first_correction) / root;
  state.weight = state.weight * step.keep - change;
  return state;
}

template <int kCount>
__global__ void adamw_kernel(AdamWRun run) {
  const AdamWStep& step = share_step(run.scalars, run.constants);
  if (step.factor != step.factor) return;
  const int64_t first = int64_t{blockIdx.x} * kThreads * kItemsPerThread + threadIdx.x;
  for (int64_t k = 0; k < kItemsPerThread; ++k) {
    const int64_t at = (first + k * kThreads) * kCount;
    if (at >= run.walk.columns) return;
    const Elements<kCount> gradient = load<kCount>(run.gradient, at);
    Elements<kCount> weight = load<kCount>(run.master, at);
    Elements<kCount> first_moment = load<kCount>(run.first_moment, at);
    Elements<kCount> second_moment = load<kCount>(run.second_moment, at);
    for (int i = 0; i < kCount; ++i) {
      const State next =
          advance(step, run.constants, {weight.at[i], first_moment.at[i], second_moment.at[i]},
                  gradient.at[i]);
      weight.at[i] = next.weight;
      first_moment.at[i] = next.first;
      second_moment.at[i] = next.second;
    }
    store(run.master, at, weight);
    if (run.weight.data != run.master.data) store(run.weight, at, weight);
    store(run.first_moment, at, first_moment);
    store(run.second_moment, at, second_moment);
  }
}

__device__ void store_rounded(const Operand& x, int64_t at, float value, uint32_t bits) {
  static_cast<uint16_t*>(x.data)[at] = round_stochastically(value, bits).bits;
}

// A thread is one call of the generator in each plane: eight elements, 16 apart (random_bits.h).
__global__ void adamw_stochastic_kernel(AdamWRun run) {
  const AdamWStep& step = share_step(run.scalars, run.constants);
  if (step.factor != step.factor) return;
  const int64_t call = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const base::PhiloxCounter weight_bits = rounding_words(step.key, kWeight, call);
  const base::PhiloxCounter first_bits = rounding_words(step.key, kFirstMoment, call);
  const base::PhiloxCounter second_bits = rounding_words(step.key, kSecondMoment, call);
  const int64_t first = call / kRandomLanes * kRoundingBlock + call % kRandomLanes;
  for (int part = 0; part < kRoundingParts; ++part) {
    const int64_t at = first + part * kRandomLanes;
    if (at >= run.walk.columns) return;
    const State old{load_one(run.weight, at), load_one(run.first_moment, at),
                    load_one(run.second_moment, at)};
    const State next = advance(step, run.constants, old, load_one(run.gradient, at));
    store_rounded(run.weight, at, next.weight, rounding_part(weight_bits, part));
    store_rounded(run.first_moment, at, next.first, rounding_part(first_bits, part));
    store_rounded(run.second_moment, at, next.second, rounding_part(second_bits, part));
  }
}

LaunchShape blocks_of(int64_t items, int64_t items_a_block) {
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.grid.x = static_cast<uint32_t>(ceil_div(items, items_a_block));
  return shape;
}

}  // namespace

void sum_squares(const SquaresRun& run, cudaStream_t stream) {
  const int64_t partials = norm_partials(run.walk.rows, run.walk.columns);
  if (partials == 0) return;
  launch(run.walk.vectors ? sum_squares_kernel<kVectorElements> : sum_squares_kernel<1>,
         blocks_of(partials, 1), stream, run);
}

void finish_norm(const float* partials, int64_t count, float* norm, cudaStream_t stream) {
  launch(finish_norm_kernel, blocks_of(1, 1), stream, partials, count, norm);
}

void clip_factor(const float* norm, float max_norm, float* factor, cudaStream_t stream) {
  over_items(ClipFactor{norm, max_norm, factor}, 1, 1, stream);
}

void adamw(const AdamWRun& run, cudaStream_t stream) {
  const int64_t items = run.walk.columns / (run.walk.vectors ? kVectorElements : 1);
  if (items == 0) return;
  launch(run.walk.vectors ? adamw_kernel<kVectorElements> : adamw_kernel<1>,
         blocks_of(items, kThreads * kItemsPerThread), stream, run);
}

void adamw_stochastic(const AdamWRun& run, cudaStream_t stream) {
  const int64_t calls = ceil_div(run.walk.columns, kRoundingBlock) * kRandomLanes;
  if (calls == 0) return;
  launch(adamw_stochastic_kernel, blocks_of(calls, kThreads), stream, run);
}

}  // namespace snug::backends::cuda
