// Quantising: eight lanes handle a block of 64 values; each lane has the eight adjacent values that
// become one word of codes. All lanes of a warp take part in finding the largest magnitude; those
// beyond the end have zeros.
#include "backends/cuda/product/kernels/nf4.cuh"

#include "backends/cuda/kernels/reduce.cuh"
#include "formats/quantization/nf4.h"
#include "formats/quantization/nf4_blocks.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int64_t kItemsPerThread = 4;

template <int kCount>
__global__ void dequantize_kernel(const __grid_constant__ DequantizeRun run,
                                  const __grid_constant__ Nf4Values values) {
  __shared__ float table[kNf4Values];
  share_table(values, table);
  const int64_t items = run.walk.rows * run.walk.columns / kCount;
  const int64_t first = int64_t{blockIdx.x} * kThreads * kItemsPerThread + threadIdx.x;
  for (int64_t i = 0; i < kItemsPerThread; ++i) {
    const int64_t item = first + i * kThreads;
    if (item >= items) return;
    const int64_t element = item * kCount;
    if (run.bounds != nullptr) {
      const int32_t* const bounds = run.bounds + 2 * (element / run.matrix_elements);
      if (bounds[0] == bounds[1]) continue;
    }
    const int64_t row = run.walk.rows == 1 ? 0 : element / run.walk.columns;
    store(run.w, row * run.w.stride + element - row * run.walk.columns,
          decode<kCount>(run.stored, run.first + element, table));
  }
}

constexpr int kLaneValues = kVectorElements;
constexpr int kBlockLanes = static_cast<int>(formats::kNf4BlockSize) / kLaneValues;
constexpr int kThresholds = 15;

struct Thresholds {
  float at[kThresholds];
};

Thresholds thresholds() {
  Thresholds all{};
  for (int i = 0; i < kThresholds; ++i) all.at[i] = formats::kNf4Thresholds[static_cast<size_t>(i)];
  return all;
}

// Loads values from `first` on, with zeros beyond the end.
__device__ Elements<kLaneValues> load_values(const QuantizeNf4Run& run, int64_t first) {
  if (first + kLaneValues <= run.elements) return load<kLaneValues>(run.values, first);
  Elements<kLaneValues> values;
  for (int i = 0; i < kLaneValues; ++i)
    values.at[i] = first + i < run.elements ? load_one(run.values, first + i) : 0.0F;
  return values;
}

// The largest magnitude of a block, in each of its lanes. Compared as integers, magnitudes have the
// order of their values, with infinity and NaN at the top, so neither is lost.
__device__ float largest_magnitude(const Elements<kLaneValues>& values) {
  int32_t largest = 0;
  for (const float value : values.at) {
    const auto magnitude = static_cast<int32_t>(__float_as_uint(value) & 0x7fffffffU);
    largest = magnitude > largest ? magnitude : largest;
  }
  for (int lanes = kBlockLanes / 2; lanes > 0; lanes /= 2) {
    const int32_t other = __shfl_xor_sync(kWholeWarp, largest, lanes);
    largest = other > largest ? other : largest;
  }
  return __uint_as_float(static_cast<uint32_t>(largest));
}

// The number of thresholds below the value; NaN counts as above all.
__device__ uint32_t code_of(const Thresholds& thresholds, float scaled) {
  uint32_t code = 0;
  for (const float threshold : thresholds.at) code += scaled <= threshold ? 0 : 1;
  return code;
}

__global__ void quantize_kernel(QuantizeNf4Run run, Thresholds thresholds) {
  const int64_t item = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t first = item * kLaneValues;
  const Elements<kLaneValues> values = load_values(run, first);
  const float largest = largest_magnitude(values);
  if (first >= run.elements) return;
  const int64_t block = item / kBlockLanes;
  const bool is_whole = (block + 1) * formats::kNf4BlockSize <= run.elements;
  const float raised = largest < formats::kNf4LeastScale ? formats::kNf4LeastScale : largest;
  // In a partial block, values are divided, while in a whole one they are multiplied by the
  // reciprocal, and the absmax of a partial block is stored as at least kNf4LeastScale:
  // formats/quantization/nf4.cpp.
  if (item % kBlockLanes == 0) run.absmax[block] = is_whole ? largest : raised;
  const float scale = __fdiv_rn(1.0F, raised);
  uint32_t pairs = 0;
  for (int i = 0; i < kLaneValues; ++i) {
    const float value = values.at[i];
    const float scaled = is_whole ? __fmul_rn(value, scale) : __fdiv_rn(value, raised);
    pairs |= code_of(thresholds, scaled) << (i / 2 * 8 + (i % 2 == 0 ? 4 : 0));
  }
  if (first + kLaneValues <= run.elements) {
    *reinterpret_cast<uint32_t*>(run.codes + first / 2) = pairs;
    return;
  }
  // With an odd count the last half byte gets the code of zero.
  for (int i = 0; first + i < run.elements; i += 2)
    run.codes[(first + i) / 2] = static_cast<uint8_t>(pairs >> (i / 2 * 8));
}

}  // namespace

Nf4Values nf4_values() {
  Nf4Values values{};
  for (int i = 0; i < kNf4Values; ++i) values.at[i] = formats::kNf4Codes[static_cast<size_t>(i)];
  return values;
}

void dequantize_nf4(const DequantizeRun& run, cudaStream_t stream) {
  const int64_t elements = run.walk.vectors ? kVectorElements : 1;
  const int64_t items = run.walk.rows * run.walk.columns / elements;
  if (items == 0) return;
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.grid.x = static_cast<uint32_t>(ceil_div(items, kThreads * kItemsPerThread));
  launch(run.walk.vectors ? dequantize_kernel<kVectorElements> : dequantize_kernel<1>, shape,
         stream, run, nf4_values());
}

void quantize_nf4(const QuantizeNf4Run& run, cudaStream_t stream) {
  const int64_t items = ceil_div(run.elements, kLaneValues);
  if (items == 0) return;
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.grid.x = static_cast<uint32_t>(ceil_div(items, kThreads));
  launch(quantize_kernel, shape, stream, run, thresholds());
}

}  // namespace snug::backends::cuda
