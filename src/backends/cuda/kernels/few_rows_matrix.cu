#include "backends/cuda/kernels/few_rows_matrix.h"

#include "backends/cuda/kernels/activations.cuh"
#include "backends/cuda/kernels/few_rows_batch.cuh"
#include "backends/cuda/kernels/norm_rows.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

constexpr int kWarps = kBatchWarps;
constexpr int kThreads = kWarps * kLanes;
constexpr int kBlocks = 3;  // at least, on a multiprocessor

// The block's sums, of one part or of the two that are gated.
using WarpSums = float[kWarps][kFewRows][kFewRowsOutputs];

// Inputs of a warp: whole steps, neighbours, as even as may be.
struct Share {
  int32_t begin;
  int32_t end;

  __device__ Share(int32_t columns, int32_t step) {
    const int32_t steps = (columns + step - 1) / step;
    const auto warp = static_cast<int32_t>(threadIdx.x / kLanes);
    begin = steps * warp / kWarps * step;
    end = steps * (warp + 1) / kWarps * step;
    if (end > columns) end = columns;
  }
};

// Copies the rows of x that the block is to multiply.
__device__ void share_rows(const Operand& x, int64_t rows, int64_t columns, uint16_t* shared) {
  const int64_t vectors = columns / kVectorElements;
  for (int64_t i = threadIdx.x; i < rows * vectors; i += kThreads) {
    const int64_t row = i / vectors;
    const int64_t column = i % vectors * kVectorElements;
    store_vector(shared + row * few_rows_stride(columns) + column,
                 load_vector(static_cast<const uint16_t*>(x.data) + row * x.stride + column));
  }
}

// The same rows, normed: the bits of rms_norm, whose block has a thread for each of `threads` here.
__device__ void share_normed_rows(const FewRowsNorm& norm, int64_t rows, int64_t columns,
                                  uint16_t* shared) {
  __shared__ float partial[kMaxRowThreads / kLanes];
  const uint32_t threads = row_threads(columns / kVectorElements);
  for (int64_t row = 0; row < rows; ++row) {
    for (uint32_t thread = threadIdx.x; thread < threads; thread += kThreads) {
      float squares = 0.0F;
      for (int64_t column = int64_t{thread} * kVectorElements; column < columns;
           column += int64_t{threads} * kVectorElements) {
        const auto value = load<kVectorElements>(norm.x, row * norm.x.stride + column);
        for (int i = 0; i < kVectorElements; ++i) squares += value.at[i] * value.at[i];
      }
      squares = warp_sum(squares);
      if (thread % kLanes == 0) partial[thread / kLanes] = squares;
    }
    __syncthreads();
    float squares = 0.0F;
    for (uint32_t warp = 0; warp < threads / kLanes; ++warp) squares += partial[warp];
    const float root = root_of(squares, columns, norm.epsilon);
    for (int64_t column = int64_t{threadIdx.x} * kVectorElements; column < columns;
         column += int64_t{kThreads} * kVectorElements) {
      auto value = load<kVectorElements>(norm.x, row * norm.x.stride + column);
      const auto weight = load<kVectorElements>(norm.weight, column);
      for (int i = 0; i < kVectorElements; ++i) value.at[i] *= root * (weight.at[i] + norm.offset);
      store(Operand{shared, 0, true}, row * few_rows_stride(columns) + column, value);
      if (blockIdx.x == 0) store(norm.y, row * norm.y.stride + column, value);
    }
    __syncthreads();  // the next row's sums take the place of these
  }
}

// The part to which the block belongs.
template <typename Weight>
__device__ int part_of_block(const FewRowsLaunch<Weight>& run) {
  int part = 0;
  while (run.gated.data == nullptr && part + 1 < run.count &&
         blockIdx.x >= run.parts[part + 1].first_block)
    ++part;
  return part;
}

// Leaves a warp's sums of a tile of outputs; `batch` holds what comes first.
template <typename Batch>
__device__ void multiply_tile(Batch& batch, const typename Batch::Rows& rows, const Inputs& x,
                              const uint32_t* pairs, const Share& share, WarpSums& warp_sums) {
  constexpr int32_t kColumns = Batch::kSteps * Batch::kStepColumns;
  LaneSums sums = {};
  for (int32_t first = share.begin; first < share.end; first += kColumns) {
    if (first > share.begin) batch.load(rows, first, share.end);
    batch.multiply(rows, x, pairs, first, share.end, sums);
  }
  Batch::finish(sums);
  const int row = 2 * lane_place();
  if (row >= kFewRows) return;
  auto& mine = warp_sums[threadIdx.x / kLanes];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    mine[row][lane_group() + 8 * i] = sums[2 * i];
    mine[row + 1][lane_group() + 8 * i] = sums[2 * i + 1];
  }
}

// Adds the warps' sums up and stores an output, as it is read again.
template <typename Weight>
__device__ float finish_output(const FewRowsPart<Weight>& part, const WarpSums& sums, int64_t row,
                               int64_t output) {
  float sum = 0.0F;
  for (int warp = 0; warp < kWarps; ++warp) sum += sums[warp][row][output % kFewRowsOutputs];
  sum *= part.alpha;
  if (part.addend.data != nullptr) sum += load_one(part.addend, row * part.addend.stride + output);
  store_one(part.y, row * part.y.stride + output, sum);
  return part.y.is_bf16 ? bf16_to_float(float_to_bf16(sum)) : sum;
}

// kShared: x is copied to shared memory first, next to the first reads of the weight.
template <typename Batch, bool kShared>
__global__ void __launch_bounds__(kThreads, kBlocks)
    few_rows_matrix_kernel(const __grid_constant__ FewRowsLaunch<typename Batch::Weight> run,
                           const __grid_constant__ Nf4Values values) {
  constexpr bool kCodes = !std::is_same_v<Batch, Bf16Batch>;
  let_next_kernel_begin();
  // The weight, too, may be what a kernel before has just made (dequantize_nf4).
  wait_for_kernels_before();
  __shared__ WarpSums sums[2];
  auto* const pairs = shared_memory<uint32_t>();
  auto* const shared_x = shared_memory<uint16_t>() + (kCodes ? kPairTableBytes / 2 : 0);
  const int first_part = part_of_block(run);
  const auto* part = run.parts + first_part;
  const int64_t first_output = int64_t{blockIdx.x - part->first_block} * kFewRowsOutputs;
  const int tiles = run.gated.data != nullptr ? 2 : 1;
  const auto rows_of_x = static_cast<int32_t>(run.rows);
  const Inputs x = kShared
                       ? Inputs{shared_x, few_rows_stride(run.columns), rows_of_x}
                       : Inputs{static_cast<const uint16_t*>(run.x.data), run.x.stride, rows_of_x};
  const Share share(static_cast<int32_t>(run.columns), Batch::kStepColumns);
  Batch batch;
  for (int tile = 0; tile < tiles; ++tile) {
    const typename Batch::Rows rows(part[tile].weight, first_output, part->outputs, run.columns);
    batch.load(rows, share.begin, share.end);
    if (tile == 0) {
      if constexpr (kShared) {
        if (run.norm.y.data != nullptr)
          share_normed_rows(run.norm, run.rows, run.columns, shared_x);
        else
          share_rows(run.x, run.rows, run.columns, shared_x);
      }
      if constexpr (kCodes) share_pairs(values, pairs);
      if constexpr (kShared || kCodes) __syncthreads();
    }
    multiply_tile(batch, rows, x, pairs, share, sums[tile]);
  }
  __syncthreads();
  const int64_t row = threadIdx.x / kFewRowsOutputs;
  const int64_t output = first_output + threadIdx.x % kFewRowsOutputs;
  if (row >= run.rows || output >= part->outputs) return;
  const float y = finish_output(part[0], sums[0], row, output);
  if (tiles == 1) return;
  const float up = finish_output(part[1], sums[1], row, output);
  store_one(run.gated, row * run.gated.stride + output, silu_mul_of(y, up));
}

template <typename Batch>
void launch_few_rows(const FewRowsLaunch<typename Batch::Weight>& run, cudaStream_t stream) {
  if (run.blocks == 0 || run.rows == 0) return;
  constexpr bool kCodes = !std::is_same_v<Batch, Bf16Batch>;
  const int64_t x_bytes = few_rows_shared_bytes(run.rows, run.columns);
  // Without codes and a norm x is read where it lies, next to the weight.
  const bool shares = run.norm.y.data != nullptr || (kCodes && x_bytes <= kFewRowsSharedBytes);
  LaunchShape shape;
  shape.grid.x = run.blocks;
  shape.block.x = kThreads;
  shape.shared_bytes =
      static_cast<int32_t>((kCodes ? kPairTableBytes : 0) + (shares ? x_bytes : 0));
  shape.begins_early = true;
  launch(shares ? few_rows_matrix_kernel<Batch, true> : few_rows_matrix_kernel<Batch, false>, shape,
         stream, run, nf4_values());
}

}  // namespace

void multiply_few_rows(const FewRowsLaunch<Bf16Weight>& run, cudaStream_t stream) {
  launch_few_rows<Bf16Batch>(run, stream);
}

void multiply_few_rows(const FewRowsLaunch<Nf4Weight>& run, cudaStream_t stream) {
  if (run.parts[0].weight.absmax == nullptr)
    launch_few_rows<Nf4Batch<true>>(run, stream);
  else
    launch_few_rows<Nf4Batch<false>>(run, stream);
}

}  // namespace snug::backends::cuda
