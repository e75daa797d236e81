// A warp for each head of a row: its largest magnitude first, then its codes.
#include "backends/cuda/attention/kernels/key_codes.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/formulas/key_codes.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kWarps = 4;

__global__ void key_codes_kernel(KeyCodesRun run) {
  wait_for_kernels_before();
  const int64_t item = int64_t{blockIdx.x} * kWarps + threadIdx.x / kLanes;
  if (item >= run.rows * run.heads) return;
  const int64_t row = item / run.heads;
  const int64_t head = item % run.heads;
  const int64_t slot = run.slots[row];
  if (slot < 0) return;
  device_check(slot < run.cache_rows);
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  const int64_t from = row * run.x.stride + head * run.head_dim;
  float largest = 0.0F;
  float zeros = 0.0F;  // NaN after an element that is not finite
  for (int d = lane; d < run.head_dim; d += kLanes) {
    const float value = load_one(run.x, from + d);
    largest = fmaxf(largest, fabsf(value));
    zeros += value * 0.0F;
  }
  largest = warp_max(largest);
  const bool is_finite = warp_sum(zeros) == 0.0F;
  const bool is_zero = !is_finite || largest < kMinMagnitude;
  const float inverse = is_zero ? 0.0F : kLargestCode / largest;
  int8_t* codes = run.codes + slot * run.stride + head * run.head_dim;
  for (int d = lane; d < run.head_dim; d += kLanes)
    codes[d] = is_zero ? int8_t{0}
                       : static_cast<int8_t>(rintf(__fmul_rn(load_one(run.x, from + d), inverse)));
  if (lane != 0) return;
  const float scale = is_zero ? 0.0F : largest / kLargestCode;
  run.scales[head * run.scale_stride + slot] = is_finite ? scale : NAN;
}

}  // namespace

void write_key_codes(const KeyCodesRun& run, cudaStream_t stream) {
  if (run.rows == 0) return;
  LaunchShape shape;
  shape.block.x = kWarps * kLanes;
  shape.grid.x = static_cast<uint32_t>(ceil_div(run.rows * run.heads, kWarps));
  shape.begins_early = true;
  launch(key_codes_kernel, shape, stream, run);
}

}  // namespace snug::backends::cuda
