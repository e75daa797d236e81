// A block computes one tile of a result. Tiles of rows are numbered so that a block finds its
// expert by bisection: the first tile of expert e has the number begin / kTile + e, which leaves at
// least as many numbers as the rows of the earlier experts need, whatever the bounds are. Tiles
// beyond an expert's rows do nothing.
//
// On tensor cores eight warps compute 128 x 128, each of them 64 x 32, from tiles of both factors
// that are copied ahead into a ring buffer in shared memory. Other types and widths use a plain
// kernel in f32.
#include "backends/cuda/expert/kernels/grouped_product.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/kernels/warp_matrix.cuh"

namespace snug::backends::cuda {
namespace {

constexpr int kTile = kGroupedTile;
constexpr int kDepth = kGroupedDepth;
constexpr int kRingStages = kGroupedStages;
constexpr int kRowsOfWarp = 64;
constexpr int kColumnsOfWarp = 32;
constexpr int kWarpsAcross = kTile / kColumnsOfWarp;
constexpr uint32_t kGroupedThreads = kTile / kRowsOfWarp * kWarpsAcross * kLanes;
constexpr int kPlainTile = kGroupedPlainTile;

// The rows of a block: its first row, and the end of its expert's range.
struct RowTile {
  int64_t expert;
  int64_t row;
  int64_t end;
};

// The tile with this number; it has no rows if row >= end. Bounds may be those of some neighbouring
// experts; numbers below their first tile have no rows either.
template <int kRows>
__device__ RowTile row_tile(const int32_t* bounds, int64_t experts, int64_t number) {
  int64_t low = 0;
  int64_t high = experts - 1;
  while (low < high) {
    const int64_t half = (low + high + 1) / 2;
    if (bounds[2 * half] / kRows + half <= number)
      low = half;
    else
      high = half - 1;
  }
  const int64_t begin = bounds[2 * low];
  const int64_t end = bounds[2 * low + 1];
  const int64_t before = number - (begin / kRows + low);
  return {low, before < 0 ? end : begin + before * kRows, end};
}

template <int kRows>
int64_t row_tiles(int64_t rows, int64_t experts) {
  return rows / kRows + experts;
}

// A factor of the product. A line in memory runs along the depth at one index of the tile's side,
// or along the side at one index of the depth. Elements outside of the ranges are zero.
struct Factor {
  const uint16_t* data;
  int64_t stride;
  int64_t side_end;
  int64_t depth_begin, depth_end;
};

// Elements from one line of a tile to the next: 16 bytes more than a line, so that eight lines that
// are read together are in different banks.
constexpr int line_stride(bool by_depth) { return (by_depth ? kTile : kDepth) + 8; }
constexpr int stage_elements(bool by_depth) {
  return (by_depth ? kDepth : kTile) * line_stride(by_depth);
}

// sizes.h must have the same size, since plans choose the kernel without CUDA headers.
static_assert(kRingStages * 2 * stage_elements(false) * int32_t{sizeof(uint16_t)} ==
              kGroupedSharedBytes);
static_assert(stage_elements(true) <= stage_elements(false));

template <bool kByDepth>
__device__ void begin_factor(uint16_t* tile, const Factor& factor, int64_t side, int64_t depth) {
  constexpr int kLines = kByDepth ? kDepth : kTile;
  constexpr int kPieces = (kByDepth ? kTile : kDepth) / kVectorElements;
  for (int i = static_cast<int>(threadIdx.x); i < kLines * kPieces;
       i += static_cast<int>(kGroupedThreads)) {
    const int line = i / kPieces;
    const int along = i % kPieces * kVectorElements;
    const int64_t at_side = side + (kByDepth ? along : line);
    const int64_t at_depth = factor.depth_begin + depth + (kByDepth ? line : along);
    const bool is_inside = at_side < factor.side_end && at_depth < factor.depth_end;
    const uint16_t* from = factor.data;
    if (is_inside)
      from += kByDepth ? at_depth * factor.stride + at_side : at_side * factor.stride + at_depth;
    begin_copy(tile + line * line_stride(kByDepth) + along, from, !is_inside);
  }
}

// Loads 16 of the side, starting at `side`, by 16 of the depth, starting at d, as the first factor.
template <bool kByDepth>
__device__ void load_first(const uint16_t* tile, int side, int d, uint32_t (&a)[4]) {
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  const int matrix = lane / 8;
  constexpr int kStride = line_stride(kByDepth);
  if constexpr (kByDepth)
    load_transposed(a, tile + (d + matrix / 2 * 8 + lane % 8) * kStride + side + matrix % 2 * 8);
  else
    load_matrices(a, tile + (side + matrix % 2 * 8 + lane % 8) * kStride + d + matrix / 2 * 8);
}

// Loads the same elements as the second factor: b[0] and b[1] are the first 8 of the side, b[2] and
// b[3] the others.
template <bool kByDepth>
__device__ void load_second(const uint16_t* tile, int side, int d, uint32_t (&b)[4]) {
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  const int matrix = lane / 8;
  constexpr int kStride = line_stride(kByDepth);
  if constexpr (kByDepth)
    load_transposed(b, tile + (d + matrix % 2 * 8 + lane % 8) * kStride + side + matrix / 2 * 8);
  else
    load_matrices(b, tile + (side + matrix / 2 * 8 + lane % 8) * kStride + d + matrix % 2 * 8);
}

using Sums = float[kRowsOfWarp / 16][kColumnsOfWarp / 8][4];

template <bool kFirstByDepth, bool kSecondByDepth, typename Format>
__device__ void multiply_stage(const uint16_t* first, const uint16_t* second, Sums& sums) {
  const auto warp = static_cast<int>(threadIdx.x / kLanes);
  const int row = warp / kWarpsAcross * kRowsOfWarp;
  const int column = warp % kWarpsAcross * kColumnsOfWarp;
  for (int d = 0; d < kDepth; d += 16) {
    uint32_t a[kRowsOfWarp / 16][4];
    for (int i = 0; i < kRowsOfWarp / 16; ++i)
      load_first<kFirstByDepth>(first, row + 16 * i, d, a[i]);
    for (int j = 0; j < kColumnsOfWarp / 8; j += 2) {
      uint32_t b[4];
      load_second<kSecondByDepth>(second, column + 8 * j, d, b);
      for (int i = 0; i < kRowsOfWarp / 16; ++i) {
        multiply_add(Format(), sums[i][j], a[i], b[0], b[1]);
        multiply_add(Format(), sums[i][j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

// Computes the tile that starts at (row, column), over all of the depth.
template <bool kFirstByDepth, bool kSecondByDepth, typename Format>
__device__ void multiply_tile(const Factor& first, const Factor& second, int64_t row,
                              int64_t column, Sums& sums) {
  constexpr int kFirst = stage_elements(kFirstByDepth);
  constexpr int kStage = kFirst + stage_elements(kSecondByDepth);
  uint16_t* const memory = shared_memory<uint16_t>();
  const int64_t depth = first.depth_end - first.depth_begin;
  const int64_t steps = (depth + kDepth - 1) / kDepth;
  const auto stage = [&](int64_t step) { return memory + step % kRingStages * kStage; };
  const auto begin = [&](int64_t step) {
    if (step < steps) {
      begin_factor<kFirstByDepth>(stage(step), first, row, step * kDepth);
      begin_factor<kSecondByDepth>(stage(step) + kFirst, second, column, step * kDepth);
    }
    end_batch();  // an empty one, so that the count below is right
  };
  for (int64_t step = 0; step < kRingStages - 1; ++step) begin(step);
  for (int64_t step = 0; step < steps; ++step) {
    wait_for_batches<kRingStages - 2>();
    // The stage has arrived, and every warp has read the one that the next copy overwrites.
    __syncthreads();
    begin(step + kRingStages - 1);
    multiply_stage<kFirstByDepth, kSecondByDepth, Format>(stage(step), stage(step) + kFirst, sums);
  }
  wait_for_batches<0>();
}

// Calls f(row, column, sum) for each of the lane's elements of the tile.
template <typename F>
__device__ void for_each_sum(const Sums& sums, F&& f) {
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  const auto warp = static_cast<int>(threadIdx.x / kLanes);
  const int row = warp / kWarpsAcross * kRowsOfWarp + lane / 4;
  const int column = warp % kWarpsAcross * kColumnsOfWarp + 2 * (lane % 4);
  for (int i = 0; i < kRowsOfWarp / 16; ++i)
    for (int j = 0; j < kColumnsOfWarp / 8; ++j)
      for (int at = 0; at < 4; ++at)
        f(row + 16 * i + at / 2 * 8, column + 8 * j + at % 2, sums[i][j][at]);
}

__device__ const uint16_t* bits_of(const DeviceRows& x) {
  return static_cast<const uint16_t*>(x.data);
}

template <bool kTransposeB, typename Format>
__global__ void __launch_bounds__(kGroupedThreads) grouped_kernel(GroupedRun run) {
  const RowTile tile = row_tile<kTile>(run.bounds, run.experts, blockIdx.x);
  if (tile.row >= tile.end) return;
  const int64_t column = int64_t{blockIdx.y} * kTile;
  const Factor a{bits_of(run.a), run.a.stride, tile.end, 0, run.k};
  const Factor b{bits_of(run.b) + tile.expert * run.k * run.n, run.b.stride, run.n, 0, run.k};
  Sums sums = {};
  multiply_tile<false, !kTransposeB, Format>(a, b, tile.row, column, sums);
  for_each_sum(sums, [&](int i, int j, float sum) {
    if (tile.row + i < tile.end && column + j < run.n)
      store_one(run.c, (tile.row + i) * run.c.stride + column + j, sum);
  });
}

__device__ void add_or_store(const DeviceRows& c, int64_t at, float sum, bool accumulate) {
  store_one(c, at, accumulate ? load_one(c, at) + sum : sum);
}

template <typename Format>
__global__ void __launch_bounds__(kGroupedThreads) grouped_grad_kernel(GroupedGradRun run) {
  const int64_t expert = blockIdx.z;
  const int64_t begin = run.bounds[2 * expert];
  const int64_t end = run.bounds[2 * expert + 1];
  if (begin == end && run.accumulate) return;
  const int64_t row = int64_t{blockIdx.y} * kTile;
  const int64_t column = int64_t{blockIdx.x} * kTile;
  const Factor a{bits_of(run.a), run.a.stride, run.m, begin, end};
  const Factor b{bits_of(run.b), run.b.stride, run.n, begin, end};
  Sums sums = {};
  multiply_tile<true, true, Format>(a, b, row, column, sums);
  for_each_sum(sums, [&](int i, int j, float sum) {
    if (row + i < run.m && column + j < run.n)
      add_or_store(run.c, (expert * run.m + row + i) * run.c.stride + column + j, sum,
                   run.accumulate);
  });
}

// For any types: a thread computes one element, and factors go through shared memory.

template <typename First, typename Second>
__device__ float plain_sum(int64_t depth, const First& first, const Second& second) {
  __shared__ float a[kPlainTile][kPlainTile + 1];
  __shared__ float b[kPlainTile][kPlainTile + 1];
  float sum = 0.0F;
  for (int64_t d = 0; d < depth; d += kPlainTile) {
    __syncthreads();  // other threads may still be reading the previous step
    a[threadIdx.y][threadIdx.x] = first(threadIdx.y, d + threadIdx.x);
    b[threadIdx.y][threadIdx.x] = second(d + threadIdx.y, threadIdx.x);
    __syncthreads();
    for (int i = 0; i < kPlainTile; ++i) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
  }
  return sum;
}

__global__ void plain_grouped_kernel(GroupedRun run) {
  const RowTile tile = row_tile<kPlainTile>(run.bounds, run.experts, blockIdx.x);
  if (tile.row >= tile.end) return;
  const int64_t column = int64_t{blockIdx.y} * kPlainTile;
  const int64_t lines = run.transpose_b ? run.n : run.k;
  const float sum = plain_sum(
      run.k,
      [&](int64_t i, int64_t d) {
        const bool is_inside = tile.row + i < tile.end && d < run.k;
        return is_inside ? load_one(run.a, (tile.row + i) * run.a.stride + d) : 0.0F;
      },
      [&](int64_t d, int64_t j) {
        if (d >= run.k || column + j >= run.n) return 0.0F;
        const int64_t line = run.transpose_b ? column + j : d;
        return load_one(run.b, (tile.expert * lines + line) * run.b.stride +
                                   (run.transpose_b ? d : column + j));
      });
  if (tile.row + threadIdx.y < tile.end && column + threadIdx.x < run.n)
    store_one(run.c, (tile.row + threadIdx.y) * run.c.stride + column + threadIdx.x, sum);
}

__global__ void plain_grouped_grad_kernel(GroupedGradRun run) {
  const int64_t expert = blockIdx.z;
  const int64_t begin = run.bounds[2 * expert];
  const int64_t end = run.bounds[2 * expert + 1];
  if (begin == end && run.accumulate) return;
  const int64_t row = int64_t{blockIdx.y} * kPlainTile;
  const int64_t column = int64_t{blockIdx.x} * kPlainTile;
  const float sum = plain_sum(
      end - begin,
      [&](int64_t i, int64_t d) {
        const bool is_inside = row + i < run.m && begin + d < end;
        return is_inside ? load_one(run.a, (begin + d) * run.a.stride + row + i) : 0.0F;
      },
      [&](int64_t d, int64_t j) {
        const bool is_inside = column + j < run.n && begin + d < end;
        return is_inside ? load_one(run.b, (begin + d) * run.b.stride + column + j) : 0.0F;
      });
  if (row + threadIdx.y < run.m && column + threadIdx.x < run.n)
    add_or_store(run.c, (expert * run.m + row + threadIdx.y) * run.c.stride + column + threadIdx.x,
                 sum, run.accumulate);
}

LaunchShape plain_shape() {
  LaunchShape shape;
  shape.block.x = kPlainTile;
  shape.block.y = kPlainTile;
  return shape;
}

LaunchShape matrix_shape(bool first_by_depth, bool second_by_depth) {
  LaunchShape shape;
  shape.block.x = kGroupedThreads;
  shape.shared_bytes = kRingStages *
                       (stage_elements(first_by_depth) + stage_elements(second_by_depth)) *
                       int32_t{sizeof(uint16_t)};
  return shape;
}

template <typename Format>
void launch_grouped(const GroupedRun& run, const LaunchShape& shape, cudaStream_t stream) {
  launch(run.transpose_b ? grouped_kernel<true, Format> : grouped_kernel<false, Format>, shape,
         stream, run);
}

}  // namespace

void multiply_grouped(const GroupedRun& run, cudaStream_t stream) {
  if (run.rows == 0 || run.n == 0) return;
  const int tile = run.tensor_cores ? kTile : kPlainTile;
  LaunchShape shape = run.tensor_cores ? matrix_shape(false, !run.transpose_b) : plain_shape();
  shape.grid.x =
      static_cast<uint32_t>(run.tensor_cores ? row_tiles<kTile>(run.rows, run.experts)
                                             : row_tiles<kPlainTile>(run.rows, run.experts));
  shape.grid.y = static_cast<uint32_t>(ceil_div(run.n, tile));
  if (!run.tensor_cores)
    launch(plain_grouped_kernel, shape, stream, run);
  else if (run.a.format == ElementFormat::f16)
    launch_grouped<F16>(run, shape, stream);
  else
    launch_grouped<Bf16>(run, shape, stream);
}

void multiply_grouped_grad(const GroupedGradRun& run, cudaStream_t stream) {
  if (run.experts == 0 || run.m == 0 || run.n == 0) return;
  const int tile = run.tensor_cores ? kTile : kPlainTile;
  LaunchShape shape = run.tensor_cores ? matrix_shape(true, true) : plain_shape();
  shape.grid.x = static_cast<uint32_t>(ceil_div(run.n, tile));
  shape.grid.y = static_cast<uint32_t>(ceil_div(run.m, tile));
  shape.grid.z = static_cast<uint32_t>(run.experts);
  if (!run.tensor_cores) return launch(plain_grouped_grad_kernel, shape, stream, run);
  launch(run.a.format == ElementFormat::f16 ? grouped_grad_kernel<F16> : grouped_grad_kernel<Bf16>,
         shape, stream, run);
}

}  // namespace snug::backends::cuda
