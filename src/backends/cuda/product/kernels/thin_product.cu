// A block of four warps goes through its part of the sum 64 deep at a time. Tiles of both factors
// are copied three steps ahead into a ring buffer in shared memory; each warp multiplies 16 of the
// block's 64 rows with the whole thin side on the tensor cores and keeps the sums in registers.
#include "backends/cuda/product/kernels/thin_product.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/kernels/warp_matrix.cuh"

namespace snug::backends::cuda {
namespace {

constexpr int kWarpWide = 16;
constexpr uint32_t kThreads = kThinWide / kWarpWide * kLanes;
constexpr int kStages = 4;

// Elements from one row of a tile to the next: 16 bytes more than the row, so that eight rows that
// are read together are in different banks.
constexpr int tile_stride_of(int columns) { return columns + 8; }
constexpr int tile_elements(int rows, int columns) { return rows * tile_stride_of(columns); }

// A tile of a matrix of rows x columns, starting at (row, column); elements outside the matrix are
// zero.
struct TileSource {
  const DeviceRows& x;
  int64_t rows, columns;
  int64_t row, column;
};

template <int kRows, int kColumns>
__device__ void begin_thin_tile(uint16_t* tile, const TileSource& source) {
  constexpr int kPieces = kColumns / kVectorElements;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kPieces;
       i += static_cast<int>(kThreads)) {
    const int column = i % kPieces * kVectorElements;
    const int64_t row = source.row + i / kPieces;
    const bool is_inside = row < source.rows && source.column + column < source.columns;
    const auto* from = static_cast<const uint16_t*>(source.x.data);
    if (is_inside) from += row * source.x.stride + source.column + column;
    begin_copy(tile + i / kPieces * tile_stride_of(kColumns) + column, from, !is_inside);
  }
}

__device__ uint32_t pair_of_tile(const uint16_t* tile, int element) {
  return *reinterpret_cast<const uint32_t*>(tile + element);
}

template <int kThin, bool kAcross, bool kSmallByDepth, typename Format>
struct ThinTiles {
  static constexpr int kLargeStride =
      tile_stride_of(kThinDepth);  // for both forms, since tiles are square
  static constexpr int kSmallColumns = kSmallByDepth ? kThin : kThinDepth;
  static constexpr int kSmallRows = kSmallByDepth ? kThinDepth : kThin;
  static constexpr int kSmallStride = tile_stride_of(kSmallColumns);
  static constexpr int kLargeElements = tile_elements(kThinWide, kThinDepth);
  static constexpr int kStageElements = kLargeElements + tile_elements(kSmallRows, kSmallColumns);

  uint16_t* memory;
  __device__ uint16_t* large(int64_t step) const {
    return memory + static_cast<int>(step % kStages) * kStageElements;
  }
  __device__ uint16_t* small(int64_t step) const { return large(step) + kLargeElements; }

  __device__ void begin(const ThinRun& run, int64_t step, int64_t wide, int64_t depth) const {
    if constexpr (kAcross)
      begin_thin_tile<kThinDepth, kThinWide>(large(step),
                                             {run.large, run.depth, run.wide, depth, wide});
    else
      begin_thin_tile<kThinWide, kThinDepth>(large(step),
                                             {run.large, run.wide, run.depth, wide, depth});
    if constexpr (kSmallByDepth)
      begin_thin_tile<kSmallRows, kSmallColumns>(small(step),
                                                 {run.small, run.depth, run.thin, depth, 0});
    else
      begin_thin_tile<kSmallRows, kSmallColumns>(small(step),
                                                 {run.small, run.thin, run.depth, 0, depth});
  }

  // Loads 16 of the depth, starting at d, of the warp's 16 rows.
  __device__ void load_large(int64_t step, int d, uint32_t (&a)[4]) const {
    const auto lane = static_cast<int>(threadIdx.x % kLanes);
    const int warp = static_cast<int>(threadIdx.x / kLanes) * kWarpWide;
    const uint16_t* tile = large(step);
    if constexpr (kAcross) {
      const int matrix = lane / 8;
      load_transposed(
          a, tile + (d + matrix / 2 * 8 + lane % 8) * kLargeStride + warp + matrix % 2 * 8);
    } else {
      const int first = (warp + lane / 4) * kLargeStride + d + 2 * (lane % 4);
      for (int i = 0; i < 4; ++i)
        a[i] = pair_of_tile(tile, first + i % 2 * 8 * kLargeStride + i / 2 * 8);
    }
  }

  // Loads columns 8 j to 8 j + 15 of the thin side by 16 of the depth, starting at d: b[0] and b[1]
  // are the first 8 columns.
  __device__ void load_small(int64_t step, int d, int j, uint32_t (&b)[4]) const {
    const auto lane = static_cast<int>(threadIdx.x % kLanes);
    const uint16_t* tile = small(step);
    if constexpr (kSmallByDepth) {
      load_transposed(b, tile + (d + lane % 16) * kSmallStride + 8 * j + lane / 16 * 8);
    } else {
      const int first = (8 * j + lane / 4) * kSmallStride + d + 2 * (lane % 4);
      for (int i = 0; i < 4; ++i)
        b[i] = pair_of_tile(tile, first + i / 2 * 8 * kSmallStride + i % 2 * 8);
    }
  }

  __device__ void multiply(int64_t step, float (&sums)[kThin / 8][4]) const {
    for (int d = 0; d < kThinDepth; d += 16) {
      uint32_t a[4];
      load_large(step, d, a);
      for (int j = 0; j < kThin / 8; j += 2) {
        uint32_t b[4];
        load_small(step, d, j, b);
        multiply_add(Format(), sums[j], a, b[0], b[1]);
        multiply_add(Format(), sums[j + 1], a, b[2], b[3]);
      }
    }
  }
};

__device__ void finish_thin(const ThinRun& run, int64_t wide, int64_t thin, float sum) {
  const auto offset = [&](const DeviceRows& x) {
    return run.result_by_thin ? thin * x.stride + wide : wide * x.stride + thin;
  };
  float value = run.alpha * sum;
  if (run.beta != 0.0F) value += run.beta * load_one(run.addend, offset(run.addend));
  store_one(run.result, offset(run.result), value);
}

template <int kThin, bool kAcross, bool kSmallByDepth, typename Format>
__global__ void __launch_bounds__(kThreads) thin_product_kernel(ThinRun run) {
  const ThinTiles<kThin, kAcross, kSmallByDepth, Format> tiles{shared_memory<uint16_t>()};
  const int64_t wide = int64_t{blockIdx.x} * kThinWide;
  const int64_t all_steps = (run.depth + kThinDepth - 1) / kThinDepth;
  const int64_t share = (all_steps + run.parts - 1) / run.parts;
  const int64_t first = blockIdx.y * share;
  const int64_t steps = first + share < all_steps ? share : all_steps - first;  // 0 or less: none
  float sums[kThin / 8][4] = {};
  const auto begin = [&](int64_t step) {
    if (step < steps) tiles.begin(run, step, wide, (first + step) * kThinDepth);
    end_batch();  // an empty one, so that the count below is right
  };
  for (int64_t step = 0; step < kStages - 1; ++step) begin(step);
  for (int64_t step = 0; step < steps; ++step) {
    wait_for_batches<kStages - 2>();
    // The tile has arrived, and every warp has read the one that the next copy overwrites.
    __syncthreads();
    begin(step + kStages - 1);
    tiles.multiply(step, sums);
  }
  wait_for_batches<0>();
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  const int64_t row = wide + static_cast<int>(threadIdx.x / kLanes) * kWarpWide + lane / 4;
  for (int j = 0; j < kThin / 8; ++j)
    for (int i = 0; i < 4; ++i) {
      const int64_t at = row + i / 2 * 8;
      const int64_t thin = 8 * j + 2 * (lane % 4) + i % 2;
      if (at >= run.wide || thin >= run.thin) continue;
      if (run.parts == 1)
        finish_thin(run, at, thin, sums[j][i]);
      else
        run.partial_sums[(blockIdx.y * run.wide + at) * run.thin + thin] = sums[j][i];
    }
}

struct AddParts {
  ThinRun run;
  __device__ void operator()(int64_t wide, int64_t thin) const {
    float sum = 0.0F;
    for (int64_t part = 0; part < run.parts; ++part)
      sum += run.partial_sums[(part * run.wide + wide) * run.thin + thin];
    finish_thin(run, wide, thin, sum);
  }
};

template <int kThin, bool kAcross, bool kSmallByDepth, typename Format>
void launch_tiles(const ThinRun& run, cudaStream_t stream) {
  using Tiles = ThinTiles<kThin, kAcross, kSmallByDepth, Format>;
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.grid.x = static_cast<uint32_t>(ceil_div(run.wide, kThinWide));
  shape.grid.y = static_cast<uint32_t>(run.parts);
  shape.shared_bytes = kStages * Tiles::kStageElements * int32_t{sizeof(uint16_t)};
  launch(thin_product_kernel<kThin, kAcross, kSmallByDepth, Format>, shape, stream, run);
}

template <int kThin, bool kAcross, bool kSmallByDepth>
void launch_thin(const ThinRun& run, cudaStream_t stream) {
  if (run.large.format == ElementFormat::f16)
    launch_tiles<kThin, kAcross, kSmallByDepth, F16>(run, stream);
  else
    launch_tiles<kThin, kAcross, kSmallByDepth, Bf16>(run, stream);
}

template <int kThin>
void launch_form(const ThinRun& run, cudaStream_t stream) {
  if (run.across) return launch_thin<kThin, true, true>(run, stream);
  if (run.small_by_depth) return launch_thin<kThin, false, true>(run, stream);
  launch_thin<kThin, false, false>(run, stream);
}

}  // namespace

void multiply_thin(const ThinRun& run, cudaStream_t stream) {
  if (run.wide == 0) return;
  if (run.thin <= 16)
    launch_form<16>(run, stream);
  else if (run.thin <= 32)
    launch_form<32>(run, stream);
  else
    launch_form<kMaxThin>(run, stream);
  if (run.parts > 1) over_items(AddParts{run}, run.wide, run.thin, stream);
}

}  // namespace snug::backends::cuda
