// Tiles of bf16 attention for the tensor cores. A block of four warps keeps 64 rows of one side
// (queries, or keys), 16 a warp, and walks the other side kColumns at a time. Scores leave the
// product in the registers in which they enter the next one as a factor (warp_matrix.cuh), rounded
// to bf16; sums are f32.
#pragma once

#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/kernels/warp_matrix.cuh"

namespace snug::backends::cuda {

inline constexpr int kMatrixRows = 16;  // of a warp
inline constexpr uint32_t kMatrixThreads = kBlockRows / kMatrixRows * kLanes;

// Of a lane: g and t of warp_matrix.cuh, and the first row of its warp in the block's.
struct LanePlace {
  int g, t, warp_row;
  __device__ LanePlace()
      : g(static_cast<int>(threadIdx.x % kLanes) / 4),
        t(static_cast<int>(threadIdx.x % 4)),
        warp_row(static_cast<int>(threadIdx.x / kLanes) * kMatrixRows) {}
  // Row of the block that holds c[2 * upper], c[2 * upper + 1].
  __device__ int row(int upper) const { return warp_row + g + 8 * upper; }
};

// Rows of a bf16 tensor, of one head. Rows that no one reads (an empty range) are zeros: they may
// hold anything.
struct MatrixSource {
  const Operand& x;
  int64_t first;
  int64_t rows;  // of the tensor
  const TokenRange* readers;
  int64_t column;
  int head_dim;  // a multiple of 8, at most kDims
};

// Begins to copy kRows rows to a tile of kDims columns; the rest of each is zero.
template <int kRows, int kDims>
__device__ void begin_tile(uint16_t* tile, const MatrixSource& source) {
  constexpr int kPieces = kDims / kVectorElements;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kPieces; i += kMatrixThreads) {
    const int64_t row = source.first + i / kPieces;
    const int column = i % kPieces * kVectorElements;
    const bool read = row < source.rows && column < source.head_dim &&
                      source.readers[row].begin < source.readers[row].end;
    const auto* from = static_cast<const uint16_t*>(source.x.data);
    if (read) from += row * source.x.stride + source.column + column;
    begin_copy(tile + i / kPieces * matrix_stride(kDims) + column, from, !read);
  }
}

__device__ inline uint32_t pair_at(const uint16_t* tile, int element) {
  return *reinterpret_cast<const uint32_t*>(tile + element);
}

__device__ inline uint32_t pair_of(float low, float high) {
  return float_to_bf16(low) | float_to_bf16(high) << 16;
}

// products[j] = the warp's 16 rows of `rows` times rows 8 j to 8 j + 7 of `columns`, over the head.
template <int kDims, int kTiles>
__device__ void multiply_tiles(const uint16_t* rows, const uint16_t* columns,
                               float (&products)[kTiles][4]) {
  constexpr int kStride = matrix_stride(kDims);
  const LanePlace place;
  for (int j = 0; j < kTiles; ++j)
    for (int i = 0; i < 4; ++i) products[j][i] = 0.0F;
  for (int d = 0; d < kDims; d += 16) {
    const int low = place.row(0) * kStride + d + 2 * place.t;
    const int high = place.row(1) * kStride + d + 2 * place.t;
    const uint32_t a[4] = {pair_at(rows, low), pair_at(rows, high), pair_at(rows, low + 8),
                           pair_at(rows, high + 8)};
    for (int j = 0; j < kTiles; ++j) {
      const int b = (8 * j + place.g) * kStride + d + 2 * place.t;
      multiply_add(products[j], a, pair_at(columns, b), pair_at(columns, b + 8));
    }
  }
}

// sums[j] += weights (16 rows, 8 kTiles columns, as products leave them) times columns 8 j to 8 j +
// 7 of the 8 kTiles rows of `values`.
template <int kDims, int kTiles>
__device__ void add_weighted_tiles(const float (&weights)[kTiles][4], const uint16_t* values,
                                   float (&sums)[kDims / 8][4]) {
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  for (int k = 0; k < kTiles; k += 2) {
    const uint32_t a[4] = {pair_of(weights[k][0], weights[k][1]),
                           pair_of(weights[k][2], weights[k][3]),
                           pair_of(weights[k + 1][0], weights[k + 1][1]),
                           pair_of(weights[k + 1][2], weights[k + 1][3])};
    const uint16_t* row = values + (8 * k + lane % 16) * matrix_stride(kDims) + lane / 16 * 8;
    for (int j = 0; j < kDims / 8; j += 2) {
      uint32_t b[4];
      load_transposed(b, row + 8 * j);
      multiply_add(sums[j], a, b[0], b[1]);
      multiply_add(sums[j + 1], a, b[2], b[3]);
    }
  }
}

// Writes the warp's rows of one head, times `scale` of rows g and g + 8.
template <int kDims>
__device__ void store_tiles(const MatrixSource& target, const float (&scale)[2],
                            const float (&sums)[kDims / 8][4]) {
  const LanePlace place;
  for (int j = 0; j < kDims / 8; ++j)
    for (int i = 0; i < 4; ++i) {
      const int64_t row = target.first + place.row(i / 2);
      const int column = 8 * j + 2 * place.t + i % 2;
      if (row < target.rows && column < target.head_dim)
        store_one(target.x, row * target.x.stride + target.column + column,
                  sums[j][i] * scale[i / 2]);
    }
}

// A block without tiles still waits for what it kept.
__device__ inline void finish_batches() {
  end_batch();
  wait_for_batches<0>();
}

template <int kTiles>
__device__ void clear_tiles(float (&sums)[kTiles][4]) {
  for (int j = 0; j < kTiles; ++j)
    for (int i = 0; i < 4; ++i) sums[j][i] = 0.0F;
}

__device__ inline TokenRange range_at(const TokenRange* ranges, int64_t row, int64_t rows) {
  return row < rows ? ranges[row] : TokenRange{};
}

__device__ inline bool contains(const TokenRange& range, int64_t token) {
  return token >= range.begin && token < range.end;
}

// What the block's 64 rows see of the other side, two rows per lane; every warp of the block has
// the same.
class BlockRanges {
 public:
  __device__ BlockRanges(const TokenRange* ranges, int64_t first, int64_t rows) {
    const auto lane = static_cast<int>(threadIdx.x % kLanes);
    begin_ = 0x7fffffff;
    end_ = 0;
    for (int half = 0; half < 2; ++half) {
      mine_[half] = range_at(ranges, first + lane + half * kLanes, rows);
      const bool empty = mine_[half].begin >= mine_[half].end;
      begin_ = !empty && mine_[half].begin < begin_ ? mine_[half].begin : begin_;
      end_ = mine_[half].end > end_ ? mine_[half].end : end_;
    }
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
      const int32_t begin = __shfl_xor_sync(kWholeWarp, begin_, lanes);
      const int32_t end = __shfl_xor_sync(kWholeWarp, end_, lanes);
      begin_ = begin < begin_ ? begin : begin_;
      end_ = end > end_ ? end : end_;
    }
  }

  __device__ int64_t begin() const { return begin_; }
  __device__ int64_t end() const { return end_; }

  // The first tile of `size` tokens from `token` on, in steps of `size`, that any row sees; else
  // end() or more.
  __device__ int64_t next(int64_t token, int size) const {
    for (; token < end_; token += size) {
      bool meets = false;
      for (const TokenRange& range : mine_)
        meets = meets || (range.begin < token + size && range.end > token);
      if (__ballot_sync(kWholeWarp, meets) != 0) return token;
    }
    return token;
  }

 private:
  TokenRange mine_[2];
  int32_t begin_;
  int32_t end_;
};

// Two stages of a pair of tiles of the other side: one is copied while the other is multiplied.
template <int kRows, int kDims>
struct TileRing {
  static constexpr int kTileElements = kRows * matrix_stride(kDims);
  uint16_t* memory;
  __device__ uint16_t* first(int stage) const { return memory + 2 * stage * kTileElements; }
  __device__ uint16_t* second(int stage) const { return first(stage) + kTileElements; }
};

inline LaunchShape matrix_tiles_of(int64_t tokens, int64_t heads, int32_t shared_bytes) {
  LaunchShape shape;
  shape.block.x = kMatrixThreads;
  shape.grid.x = static_cast<uint32_t>(ceil_div(tokens, kBlockRows));
  shape.grid.y = static_cast<uint32_t>(heads);
  shape.shared_bytes = shared_bytes;
  return shape;
}

}  // namespace snug::backends::cuda
