#include "backends/cuda/optimizer/kernels/lion.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/tensor_list.cuh"
#include "backends/formulas/decayed_share.h"
#include "backends/formulas/lion_step.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kLionThreads = 256;
constexpr int64_t kLionItems = 4;  // elements per thread

// One thread of each block computes it; all threads must call it.
__device__ const LionStep& share_step(const LionConstants& constants, const LionTensor& tensor) {
  __shared__ LionStep step;
  if (threadIdx.x == 0) {
    step.factor = *constants.factor;
    step.learning_rate = *constants.learning_rate;
    step.keep = decayed_share(step.learning_rate, tensor.weight_decay);
    step.beta1 = constants.beta1;
    step.beta2 = constants.beta2;
  }
  __syncthreads();
  return step;
}

// lion_step.h defines the order of operations, which is the same on every machine.
__device__ void advance(const LionStep& step, float gradient, float& weight, float& momentum) {
  const float g = gradient * step.factor;
  const float mean = momentum * step.beta1 + g * (1.0F - step.beta1);
  const float sign = mean > 0.0F ? 1.0F : (mean < 0.0F ? -1.0F : 0.0F);
  weight = weight * step.keep - sign * step.learning_rate;
  momentum = momentum * step.beta2 + g * (1.0F - step.beta2);
}

template <int kCount>
__device__ void step_lion(const LionStep& step, const LionTensor& tensor) {
  const DeviceRows gradient_at{tensor.gradient, 0, tensor.gradient_format};
  const DeviceRows weight_at{tensor.weight, 0, tensor.weight_format};
  const DeviceRows master_at{tensor.master};
  const DeviceRows momentum_at{tensor.momentum};
  const int64_t block = blockIdx.x - tensor.first_block;
  const int64_t first = block * kLionThreads * kLionItems + threadIdx.x;
  for (int64_t k = 0; k < kLionItems; ++k) {
    const int64_t at = (first + k * kLionThreads) * kCount;
    if (at >= tensor.elements) return;
    const Elements<kCount> gradient = load<kCount>(gradient_at, at);
    Elements<kCount> weight = load<kCount>(master_at, at);
    Elements<kCount> momentum = load<kCount>(momentum_at, at);
    for (int i = 0; i < kCount; ++i) advance(step, gradient.at[i], weight.at[i], momentum.at[i]);
    store(master_at, at, weight);
    if (tensor.weight != tensor.master) store(weight_at, at, weight);
    store(momentum_at, at, momentum);
  }
}

__global__ void lion_kernel(const __grid_constant__ LionLaunch launch) {
  const LionTensor& tensor = tensor_of_block(launch.tensors);
  const LionStep& step = share_step(launch.constants, tensor);
  if (step.factor != step.factor) return;
  if (tensor.vectors)
    step_lion<kVectorElements>(step, tensor);
  else
    step_lion<1>(step, tensor);
}

}  // namespace

int64_t step_blocks(const LionTensor& tensor) {
  const int64_t items = tensor.elements / (tensor.vectors ? kVectorElements : 1);
  return ceil_div(items, kLionThreads * kLionItems);
}

void lion(const LionLaunch& run, cudaStream_t stream) {
  if (run.tensors.count > 0) launch(lion_kernel, shape_of(run.tensors, kLionThreads), stream, run);
}

}  // namespace snug::backends::cuda
