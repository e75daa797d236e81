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
// `partial`: shared memory of a float for each of its warps.
__device__ void share_normed_rows(const FewRowsNorm& norm, int64_t rows, int64_t columns,
                                  float* partial, uint16_t* shared) {
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

// A tile of outputs: the part of the launch that it belongs to, and the first of them. Of gated
// outputs a tile stands for both parts.
struct Tile {
  int part = 0;
  int64_t first_output = 0;

  template <typename Weight>
  __device__ Tile(const FewRowsLaunch<Weight>& run, uint32_t index) {
    while (run.gated.data == nullptr && part + 1 < run.count &&
           index >= run.parts[part + 1].first_tile)
      ++part;
    first_output = int64_t{index - run.parts[part].first_tile} * kFewRowsOutputs;
  }
};

// Leaves a warp's sums of a tile of outputs. `batch` holds what comes first, and then what comes
// first of the tile after it, where there is one.
template <typename Batch>
__device__ void multiply_tile(Batch& batch, const typename Batch::Rows& rows,
                              const typename Batch::Rows& next_rows, bool has_next, const Inputs& x,
                              const uint32_t* pairs, const Share& share, WarpSums& warp_sums) {
  constexpr int32_t kColumns = Batch::kSteps * Batch::kStepColumns;
  LaneSums sums = {};
  for (int32_t first = share.begin; first < share.end; first += kColumns) {
    const bool is_last = first + kColumns >= share.end;
    const typename Batch::Rows from = is_last ? next_rows : rows;
    const int32_t next = !is_last ? first + kColumns : has_next ? share.begin : share.end;
#pragma unroll
    for (int step = 0; step < Batch::kSteps; ++step) {
      batch.multiply(rows, x, pairs, step, first, share.end, sums);
      batch.load(from, step, next, share.end);
    }
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

// A thread's output of a tile, of both parts where they are gated.
template <typename Weight>
__device__ void finish_tile(const FewRowsLaunch<Weight>& run, const Tile& tile,
                            const WarpSums (&sums)[2]) {
  const FewRowsPart<Weight>* part = run.parts + tile.part;
  const int64_t row = threadIdx.x / kFewRowsOutputs;
  const int64_t output = tile.first_output + threadIdx.x % kFewRowsOutputs;
  if (row >= run.rows || output >= part->outputs) return;
  const float y = finish_output(part[0], sums[0], row, output);
  if (run.gated.data == nullptr) return;
  const float up = finish_output(part[1], sums[1], row, output);
  store_one(run.gated, row * run.gated.stride + output, silu_mul_of(y, up));
}

// A block makes every gridDim.x-th tile. kShared: x is copied to shared memory first, next to the
// first reads of the weight.
template <typename Batch, bool kShared>
__global__ void __launch_bounds__(kThreads, kBlocks)
    few_rows_matrix_kernel(const __grid_constant__ FewRowsLaunch<typename Batch::Weight> run,
                           const __grid_constant__ Nf4Values values) {
  constexpr bool kCodes = !std::is_same_v<Batch, Bf16Batch>;
  using Rows = typename Batch::Rows;
  let_next_kernel_begin();
  // A kernel before may just have made the weight (dequantize_nf4).
  if (!run.weights_are_constant) wait_for_kernels_before();
  // Of two tiles in turn: the sums of one are added up while those of the next are made.
  __shared__ WarpSums sums[2][2];
  auto* const pairs = shared_memory<uint32_t>();
  auto* const shared_x = shared_memory<uint16_t>() + (kCodes ? kPairTableBytes / 2 : 0);
  const int parts = run.gated.data != nullptr ? 2 : 1;
  const auto rows_of = [&](const Tile& tile, int part) {
    const auto& of = run.parts[tile.part + part];
    return Rows(of.weight, tile.first_output, of.outputs, run.columns);
  };
  const auto rows_of_x = static_cast<int32_t>(run.rows);
  const Inputs x = kShared
                       ? Inputs{shared_x, few_rows_stride(run.columns), rows_of_x}
                       : Inputs{static_cast<const uint16_t*>(run.x.data), run.x.stride, rows_of_x};
  const Share share(static_cast<int32_t>(run.columns), Batch::kStepColumns);
  Tile tile(run, blockIdx.x);
  Rows rows = rows_of(tile, 0);
  Batch batch;
#pragma unroll
  for (int step = 0; step < Batch::kSteps; ++step) batch.load(rows, step, share.begin, share.end);
  if constexpr (kCodes) share_pairs(values, pairs);
  if (run.weights_are_constant) wait_for_kernels_before();
  if constexpr (kShared) {
    if (run.norm.y.data != nullptr)
      share_normed_rows(run.norm, run.rows, run.columns, &sums[0][0][0][0][0], shared_x);
    else
      share_rows(run.x, run.rows, run.columns, shared_x);
  }
  if constexpr (kShared || kCodes) __syncthreads();
  int turn = 0;
  for (uint32_t index = blockIdx.x; index < run.tiles; index += gridDim.x, turn = 1 - turn) {
    const uint32_t next_index = index + gridDim.x;
    const Tile next(run, next_index < run.tiles ? next_index : index);
    for (int part = 0; part < parts; ++part) {
      const bool is_last = part + 1 == parts;
      const Rows next_rows = is_last ? rows_of(next, 0) : rows_of(tile, part + 1);
      multiply_tile(batch, rows, next_rows, !is_last || next_index < run.tiles, x, pairs, share,
                    sums[turn][part]);
      rows = next_rows;
    }
    __syncthreads();
    finish_tile(run, tile, sums[turn]);
    tile = next;
  }
}

template <typename Batch>
void launch_few_rows(const FewRowsLaunch<typename Batch::Weight>& run, int64_t multiprocessors,
                     cudaStream_t stream) {
  if (run.tiles == 0 || run.rows == 0) return;
  constexpr bool kCodes = !std::is_same_v<Batch, Bf16Batch>;
  const int64_t x_bytes = few_rows_shared_bytes(run.rows, run.columns);
  const bool shares = x_bytes <= kFewRowsSharedBytes;
  LaunchShape shape;
  // No more than there are at a time, and each of as many tiles.
  const int64_t turns = ceil_div(run.tiles, kBlocks * multiprocessors);
  shape.grid.x = static_cast<uint32_t>(ceil_div(run.tiles, turns));
  shape.block.x = kThreads;
  shape.shared_bytes =
      static_cast<int32_t>((kCodes ? kPairTableBytes : 0) + (shares ? x_bytes : 0));
  shape.begins_early = true;
  launch(shares ? few_rows_matrix_kernel<Batch, true> : few_rows_matrix_kernel<Batch, false>, shape,
         stream, run, nf4_values());
}

}  // namespace

void multiply_few_rows(const FewRowsLaunch<Bf16Weight>& run, int64_t multiprocessors,
                       cudaStream_t stream) {
  launch_few_rows<Bf16Batch>(run, multiprocessors, stream);
}

void multiply_few_rows(const FewRowsLaunch<Nf4Weight>& run, int64_t multiprocessors,
                       cudaStream_t stream) {
  if (run.parts[0].weight.absmax == nullptr)
    launch_few_rows<Nf4Batch<true>>(run, multiprocessors, stream);
  else
    launch_few_rows<Nf4Batch<false>>(run, multiprocessors, stream);
}

}  // namespace snug::backends::cuda
