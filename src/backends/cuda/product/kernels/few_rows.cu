#include "backends/cuda/product/kernels/few_rows.h"

#include <cstddef>

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/product/kernels/nf4.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kWarps = 8;  // outputs in a block, one per warp

__device__ int64_t output_of_warp() { return int64_t{blockIdx.x} * kWarps + threadIdx.x / kLanes; }
__device__ int lane() { return static_cast<int>(threadIdx.x % kLanes); }

// sums[row] += weight . x[row] for the columns from `column` on.
template <int kCount>
__device__ void add_products(const Walk& inputs, const DeviceRows& x, int64_t column,
                             const Elements<kCount>& weight, float (&sums)[kFewRows]) {
  for (int row = 0; row < kFewRows; ++row) {
    if (row >= inputs.rows) return;
    const Elements<kCount> value = load<kCount>(x, row * x.stride + column);
    for (int i = 0; i < kCount; ++i) sums[row] += weight.at[i] * value.at[i];
  }
}

// An item of the weight as it was read: it is converted only when it is used, so that several reads
// can be in flight.
template <int kCount>
struct WeightItem {
  Vector16 words[2];

  __device__ void read(const DeviceRows& x, int64_t offset) {
    const auto* from = static_cast<const std::byte*>(x.data) + offset * element_bytes(x.format);
    words[0] = load_vector(from);
    if (x.format == ElementFormat::f32) words[1] = load_vector(from + sizeof(Vector16));
  }
  __device__ Elements<kCount> elements(ElementFormat format) const {
    Elements<kCount> elements;
    if (format == ElementFormat::f32)
      for (int i = 0; i < kCount; ++i) elements.at[i] = __uint_as_float(words[i / 4].word[i % 4]);
    else if (format == ElementFormat::f16)
      widen_pairs<F16>(words[0], elements);
    else
      widen_pairs<Bf16>(words[0], elements);
    return elements;
  }
};

template <>
struct WeightItem<1> {
  Elements<1> value;

  __device__ void read(const DeviceRows& x, int64_t offset) { value = load<1>(x, offset); }
  __device__ Elements<1> elements(ElementFormat) const { return value; }
};

// Reads four items of the weight before it uses the first: at the lane's column and three further
// ones, `step` apart. Items beyond the row read the first one again and add nothing.
template <int kCount>
__device__ void add_items(const FewRowsRun& run, int64_t output, int64_t column, int64_t step,
                          float (&sums)[kFewRows]) {
  constexpr int kItems = 4;
  WeightItem<kCount> weight[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int64_t at = column + i * step;
    weight[i].read(run.weight,
                   output * run.weight.stride + (at < run.inputs.columns ? at : column));
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i)
    if (column + i * step < run.inputs.columns)
      add_products<kCount>(run.inputs, run.x, column + i * step,
                           weight[i].elements(run.weight.format), sums);
}

template <int kCount>
__global__ void few_rows_kernel(FewRowsRun run) {
  const int64_t output = output_of_warp();
  if (output >= run.outputs) return;
  float sums[kFewRows] = {};
  constexpr int64_t kStep = kLanes * kCount;
  for (int64_t column = lane() * kCount; column < run.inputs.columns; column += 4 * kStep)
    add_items<kCount>(run, output, column, kStep, sums);
  for (int row = 0; row < kFewRows; ++row) {
    if (row >= run.inputs.rows) return;
    float sum = run.alpha * warp_sum(sums[row]);
    if (run.addend.data != nullptr) sum += load_one(run.addend, row * run.addend.stride + output);
    if (lane() == 0) store_one(run.y, row * run.y.stride + output, sum);
  }
}

// A lane handles eight codes at a time, which are in one block and so share a scale.
template <int kCount>
__global__ void few_rows_nf4_kernel(const __grid_constant__ FewRowsNf4Run run,
                                    const __grid_constant__ Nf4Values values) {
  __shared__ float table[kNf4Values];
  share_table(values, table);
  const int64_t output = output_of_warp();
  if (output >= run.outputs) return;
  float sums[kFewRows] = {};
  for (int64_t column = lane() * kCount; column < run.inputs.columns; column += kLanes * kCount)
    add_products<kCount>(run.inputs, run.x, column,
                         decode<kCount>(run.weight, output * run.inputs.columns + column, table),
                         sums);
  for (int row = 0; row < kFewRows; ++row) {
    if (row >= run.inputs.rows) return;
    float sum = warp_sum(sums[row]);
    if (run.addend.data != nullptr) sum += load_one(run.addend, row * run.addend.stride + output);
    if (lane() == 0) store_one(run.y, row * run.y.stride + output, sum);
  }
}

LaunchShape shape_of(int64_t outputs) {
  LaunchShape shape;
  shape.block.x = kWarps * kLanes;
  shape.grid.x = static_cast<uint32_t>(ceil_div(outputs, kWarps));
  return shape;
}

}  // namespace

void multiply_few_rows(const FewRowsRun& run, cudaStream_t stream) {
  if (run.outputs == 0) return;
  launch(run.inputs.vectors ? few_rows_kernel<kVectorElements> : few_rows_kernel<1>,
         shape_of(run.outputs), stream, run);
}

void multiply_few_rows_nf4(const FewRowsNf4Run& run, cudaStream_t stream) {
  if (run.outputs == 0) return;
  launch(run.inputs.vectors ? few_rows_nf4_kernel<kVectorElements> : few_rows_nf4_kernel<1>,
         shape_of(run.outputs), stream, run, nf4_values());
}

}  // namespace snug::backends::cuda
