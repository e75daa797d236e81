// A tile of attention: the block's own rows of one head with tile_rows(kColumns) of another tensor,
// computed by four warps. Each warp has warp_rows(kColumns) of the block's rows; a lane stands for
// a row of the other side while scores are computed, and for kColumns columns of the head while
// they are applied. Everything is fp32.
#pragma once

#include "backends/cuda/attention/kernels/attention.h"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {

inline constexpr uint32_t kTileThreads = kTileWarps * kLanes;

__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x % kLanes); }
template <int kColumns>
__device__ int first_row_of_warp() {
  return static_cast<int>(threadIdx.x / kLanes) * warp_rows(kColumns);
}

// The rows of a tensor that a tile holds: rows of one head, starting at `first`, that are read by
// someone.
struct TileSource {
  const DeviceRows& x;
  int64_t first;
  int64_t rows;               // the number of rows in the tensor
  const TokenRange* readers;  // a row with an empty range becomes zero, since it may hold anything
  int64_t column;             // the first column of the head
  int head_dim;
  const int32_t* places =
      nullptr;                    // instead of readers: where each row lies, -1 where none reads it
  const float* scales = nullptr;  // of rows in 8 bits, of this head; null: they are not

  // Where a row lies; negative where it is not to be read.
  __device__ int64_t place_of(int64_t row) const {
    if (row >= rows) return -1;
    if (places != nullptr) return places[row];
    return readers[row].begin < readers[row].end ? row : -1;
  }
  __device__ float at(int64_t place, int64_t in_head) const {
    const int64_t offset = place * x.stride + column + in_head;
    if (scales == nullptr) return load_one(x, offset);
    return scales[place] * static_cast<float>(static_cast<const int8_t*>(x.data)[offset]);
  }
};

template <int kRows, int kColumns>
__device__ void load_tile(float* tile, const TileSource& source) {
  constexpr int kWidth = kColumns * kLanes;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kWidth; i += kTileThreads) {
    const int column = i % kWidth;
    const int64_t row = column < source.head_dim ? source.place_of(source.first + i / kWidth) : -1;
    tile[i / kWidth * tile_stride(kColumns) + column] = row >= 0 ? source.at(row, column) : 0.0F;
  }
}

// products[r] = the dot product of this warp's row r in `rows` with the lane's row in `lanes`.
template <int kColumns>
__device__ void multiply_rows(const float* rows, const float* lanes, int head_dim,
                              float (&products)[warp_rows(kColumns)]) {
  const float* row = rows + first_row_of_warp<kColumns>() * tile_stride(kColumns);
  // A lane without a row computes what another one does, and nobody uses it.
  const float* lane = lanes + lane_of_thread() % tile_rows(kColumns) * tile_stride(kColumns);
  for (int r = 0; r < warp_rows(kColumns); ++r) products[r] = 0.0F;
  for (int d = 0; d < head_dim; ++d) {
    const float value = lane[d];
    for (int r = 0; r < warp_rows(kColumns); ++r)
      products[r] += row[r * tile_stride(kColumns) + d] * value;
  }
}

// sums[r][c] += weights[r][i] * values[i][c] over the rows i of a tile.
template <int kColumns>
__device__ void add_weighted_rows(const float* weights, const float* values,
                                  float (&sums)[warp_rows(kColumns)][kColumns]) {
  const float* row = weights + first_row_of_warp<kColumns>() * kLanes;
  for (int i = 0; i < tile_rows(kColumns); ++i) {
    float value[kColumns];
    for (int c = 0; c < kColumns; ++c)
      value[c] = values[i * tile_stride(kColumns) + c * kLanes + lane_of_thread()];
    for (int r = 0; r < warp_rows(kColumns); ++r) {
      const float weight = row[r * kLanes + i];
      for (int c = 0; c < kColumns; ++c) sums[r][c] += weight * value[c];
    }
  }
}

// Writes the warp's rows of one head, multiplied by `scale`.
template <int kColumns>
__device__ void store_rows(const TileSource& target, const float (&scale)[warp_rows(kColumns)],
                           const float (&sums)[warp_rows(kColumns)][kColumns]) {
  for (int r = 0; r < warp_rows(kColumns); ++r) {
    const int64_t row = target.first + first_row_of_warp<kColumns>() + r;
    for (int c = 0; c < kColumns; ++c) {
      const int column = c * kLanes + lane_of_thread();
      if (row < target.rows && column < target.head_dim)
        store_one(target.x, row * target.x.stride + target.column + column, sums[r][c] * scale[r]);
    }
  }
}

__device__ inline bool is_in(const TokenRange& range, int64_t token) {
  return token >= range.begin && token < range.end;
}

// The range of the tile's row `first + lane`; empty beyond the tile's or the tensor's rows.
template <int kRows>
__device__ TokenRange range_of_lane(const TokenRange* ranges, int64_t first, int64_t rows) {
  const int64_t row = first + lane_of_thread();
  return lane_of_thread() < kRows && row < rows ? ranges[row] : TokenRange{};
}

// The union of what the tile's rows see, from the ranges of the lanes; the same in every warp of
// the block.
__device__ inline TokenRange union_of_lanes(const TokenRange& mine) {
  const bool empty = mine.begin >= mine.end;
  TokenRange all{empty ? 0x7fffffff : mine.begin, empty ? 0 : mine.end};
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
    const int32_t begin = __shfl_xor_sync(kWholeWarp, all.begin, lanes);
    const int32_t end = __shfl_xor_sync(kWholeWarp, all.end, lanes);
    all.begin = begin < all.begin ? begin : all.begin;
    all.end = end > all.end ? end : all.end;
  }
  return all;
}

// Whether any lane's range overlaps the tile of tokens that starts at `first`.
template <int kColumns>
__device__ bool any_meets(const TokenRange& mine, int64_t first) {
  const int64_t end = first + tile_rows(kColumns);
  return __ballot_sync(kWholeWarp, mine.begin < end && mine.end > first) != 0;
}

// Whether the range has the lane's row of the tile that starts at `first`.
template <int kColumns>
__device__ bool has_row_of_lane(const TokenRange& range, int64_t first) {
  return lane_of_thread() < tile_rows(kColumns) && is_in(range, first + lane_of_thread());
}

// Calls Kernel<columns>{}(...) with lane_columns(head_dim) as a template argument.
template <template <int> typename Kernel, typename... Arguments>
void with_lane_columns(int64_t head_dim, const Arguments&... arguments) {
  switch (lane_columns(head_dim)) {
    case 1:
      return Kernel<1>::launch(arguments...);
    case 2:
      return Kernel<2>::launch(arguments...);
    case 4:
      return Kernel<4>::launch(arguments...);
    case 8:
      return Kernel<8>::launch(arguments...);
    default:
      return Kernel<16>::launch(arguments...);
  }
}

// One block for each tile of `tokens` and each of `heads`.
template <int kColumns>
LaunchShape tiles_of(int64_t tokens, int64_t heads, int32_t shared_bytes) {
  LaunchShape shape;
  shape.block.x = kTileThreads;
  shape.grid.x = static_cast<uint32_t>(ceil_div(tokens, own_rows(kColumns)));
  shape.grid.y = static_cast<uint32_t>(heads);
  shape.shared_bytes = shared_bytes;
  return shape;
}

}  // namespace snug::backends::cuda
