#include "backends/cuda/optimizer/kernels/optimizer.h"

#include "backends/cuda/kernels/lane_elements.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/kernels/tensor_list.cuh"
#include "backends/cuda/optimizer/kernels/adamw_step.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int64_t kItemsPerThread = 4;

// Planes of random_bits.h.
enum Plane : uint32_t { kWeight = 0, kFirstMoment = 1, kSecondMoment = 2 };

template <int kCount>
__device__ float sum_of_squares(const SquaresTensor& tensor, int64_t row, int64_t begin,
                                int64_t end) {
  float sum = 0.0F;
  for (int64_t column = begin + threadIdx.x * kCount; column < end; column += kThreads * kCount) {
    const Elements<kCount> x = load<kCount>(tensor.x, row * tensor.x.stride + column);
    for (int i = 0; i < kCount; ++i) sum += x.at[i] * x.at[i];
  }
  return block_sum(sum);
}

__global__ void sum_squares_kernel(const __grid_constant__ SquaresList list) {
  const SquaresTensor& tensor = tensor_of_block(list);
  const int64_t partial = blockIdx.x - tensor.first_block;
  const int64_t chunks = ceil_div(tensor.columns, kNormElements);
  const int64_t row = partial / chunks;
  const int64_t begin = partial % chunks * kNormElements;
  const int64_t end =
      begin + kNormElements < tensor.columns ? begin + kNormElements : tensor.columns;
  const float sum = tensor.vectors ? sum_of_squares<kVectorElements>(tensor, row, begin, end)
                                   : sum_of_squares<1>(tensor, row, begin, end);
  if (threadIdx.x == 0) tensor.partials[partial] = sum;
}

// The sum of a block's values, starting at `begin`: each thread sums every kThreads-th value, then
// pairs of threads' sums are added. All threads take part; the first one gets the result.
template <typename Number>
__device__ double block_total(const Number* values, int64_t begin, int64_t end) {
  __shared__ double sums[kThreads];
  double sum = 0.0;
#pragma unroll 8
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    sum += static_cast<double>(values[i]);
  sums[threadIdx.x] = sum;
  for (uint32_t half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  return threadIdx.x == 0 ? sums[0] : 0.0;
}

__global__ void add_partials_kernel(const float* partials, int64_t count, double* sums) {
  const int64_t begin = blockIdx.x * kNormBlockPartials;
  const int64_t end = begin + kNormBlockPartials < count ? begin + kNormBlockPartials : count;
  const double sum = block_total(partials, begin, end);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <typename Number>
__global__ void finish_norm_kernel(const Number* partials, int64_t count, float* norm) {
  const double sum = block_total(partials, 0, count);
  if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(sum));
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

// adamw_factors.h defines the order of operations, which is the same on every machine.
__device__ State advance(const AdamWStep& step, const AdamWConstants& constants, State state,
                         float gradient) {
  const float g = gradient * step.factor;
  state.first = state.first * constants.beta1 + g * (1.0F - constants.beta1);
  state.second = state.second * constants.beta2 + g * g * (1.0F - constants.beta2);
  const float root = sqrtf(state.second * step.plain.inverse_second_correction) + constants.epsilon;
  state.weight = state.weight * step.plain.keep - state.first * step.plain.step_size / root;
  return state;
}

template <int kCount>
__device__ void step_elements(const AdamWStep& step, const AdamWConstants& constants,
                              const MasterTensor& tensor) {
  const DeviceRows gradient_at{tensor.gradient, 0, tensor.gradient_format};
  const DeviceRows weight_at{tensor.weight, 0, tensor.weight_format};
  const DeviceRows master_at{tensor.master};
  const DeviceRows first_at{tensor.moments[0]};
  const DeviceRows second_at{tensor.moments[1]};
  const int64_t block = blockIdx.x - tensor.first_block;
  const int64_t first = block * kThreads * kItemsPerThread + threadIdx.x;
  for (int64_t k = 0; k < kItemsPerThread; ++k) {
    const int64_t at = (first + k * kThreads) * kCount;
    if (at >= tensor.elements) return;
    const Elements<kCount> gradient = load<kCount>(gradient_at, at);
    Elements<kCount> weight = load<kCount>(master_at, at);
    Elements<kCount> first_moment = load<kCount>(first_at, at);
    Elements<kCount> second_moment = load<kCount>(second_at, at);
    for (int i = 0; i < kCount; ++i) {
      const State next = advance(
          step, constants, {weight.at[i], first_moment.at[i], second_moment.at[i]}, gradient.at[i]);
      weight.at[i] = next.weight;
      first_moment.at[i] = next.first;
      second_moment.at[i] = next.second;
    }
    store(master_at, at, weight);
    if (tensor.weight != tensor.master) store(weight_at, at, weight);
    store(first_at, at, first_moment);
    store(second_at, at, second_moment);
  }
}

__global__ void adamw_kernel(const __grid_constant__ AdamWMaster launch) {
  const MasterTensor& tensor = tensor_of_block(launch.tensors);
  const AdamWStep& step = share_step(launch.constants, tensor);
  if (step.factor != step.factor) return;
  if (tensor.vectors)
    step_elements<kVectorElements>(step, launch.constants, tensor);
  else
    step_elements<1>(step, launch.constants, tensor);
}

// A warp handles 256 elements, a lane eight adjacent ones (lane_elements.cuh).
__global__ void adamw_stochastic_kernel(const __grid_constant__ AdamWStochastic launch) {
  const StochasticTensor& tensor = tensor_of_block(launch.tensors);
  __shared__ RoundingBits traded[kThreads / kLanes];
  const AdamWStep& step = share_step(launch.constants, tensor);
  if (step.factor != step.factor) return;
  const int64_t warp = threadIdx.x / kLanes;
  const int64_t block = int64_t{blockIdx.x - tensor.first_block} * (kThreads / kLanes) + warp;
  if (block * kOfWarp >= tensor.elements) return;
  const LanePlace place = place_of_lane(block, tensor.elements);
  const bool vectors = tensor.vectors && place.is_full();
  const DeviceRows weight_at{tensor.weight, 0, ElementFormat::bf16};
  const DeviceRows first_at{tensor.moments[0], 0, ElementFormat::bf16};
  const DeviceRows second_at{tensor.moments[1], 0, ElementFormat::bf16};
  const LaneElements gradient =
      load_lane({tensor.gradient, 0, tensor.gradient_format}, place, vectors);
  LaneElements weight = load_lane(weight_at, place, vectors);
  LaneElements first = load_lane(first_at, place, vectors);
  LaneElements second = load_lane(second_at, place, vectors);
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    const State next =
        advance(step, launch.constants, {weight.at[i], first.at[i], second.at[i]}, gradient.at[i]);
    weight.at[i] = next.weight;
    first.at[i] = next.first;
    second.at[i] = next.second;
  }
  const auto round_all = [&](LaneElements& elements, uint32_t plane) {
    const LaneBits bits = trade_bits(step.key, plane, block + tensor.first / kOfWarp, traded[warp]);
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) elements.at[i] = rounded(elements.at[i], bits.of(i));
  };
  round_all(weight, kWeight);
  round_all(first, kFirstMoment);
  round_all(second, kSecondMoment);
  store_lane(weight_at, place, vectors, weight);
  store_lane(first_at, place, vectors, first);
  store_lane(second_at, place, vectors, second);
}

}  // namespace

void sum_squares(const SquaresList& list, cudaStream_t stream) {
  if (list.count > 0) launch(sum_squares_kernel, shape_of(list, kThreads), stream, list);
}

void finish_norm(float* partials, int64_t count, float* norm, cudaStream_t stream) {
  LaunchShape shape;
  shape.block.x = kThreads;
  if (norm_sums(count) == 0)
    return launch(finish_norm_kernel<float>, shape, stream, partials, count, norm);
  const int64_t blocks = norm_sums(count);
  auto* const sums = reinterpret_cast<double*>(partials + norm_sums_offset(count));
  LaunchShape first = shape;
  first.grid.x = static_cast<uint32_t>(blocks);
  launch(add_partials_kernel, first, stream, partials, count, sums);
  launch(finish_norm_kernel<double>, shape, stream, sums, blocks, norm);
}

void clip_factor(const float* norm, float max_norm, float* factor, cudaStream_t stream) {
  over_items(ClipFactor{norm, max_norm, factor}, 1, 1, stream);
}

int64_t step_blocks(const MasterTensor& tensor) {
  const int64_t items = tensor.elements / (tensor.vectors ? kVectorElements : 1);
  return ceil_div(items, kThreads * kItemsPerThread);
}

int64_t step_blocks(const StochasticTensor& tensor) {
  return ceil_div(tensor.elements, kOfWarp * (kThreads / kLanes));
}

void adamw(const AdamWMaster& run, cudaStream_t stream) {
  if (run.tensors.count > 0) launch(adamw_kernel, shape_of(run.tensors, kThreads), stream, run);
}

void adamw(const AdamWStochastic& run, cudaStream_t stream) {
  if (run.tensors.count > 0)
    launch(adamw_stochastic_kernel, shape_of(run.tensors, kThreads), stream, run);
}

}  // namespace snug::backends::cuda
