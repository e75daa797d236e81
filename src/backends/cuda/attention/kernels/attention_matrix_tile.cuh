// Attention tiles for the tensor cores, in a 16-bit format. A block of four warps keeps 64 rows of
// one side (queries or keys), 16 per warp, and goes through the other side a tile of rows at a
// time. Scores leave one product in the registers in which they enter the next as a factor
// (warp_matrix.cuh), rounded to the format; sums are f32.
#pragma once

#include <type_traits>

#include "backends/cuda/attention/kernels/attention.h"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/kernels/warp_matrix.cuh"

namespace snug::backends::cuda {

inline constexpr int kMatrixRows = 16;  // the rows of one warp
inline constexpr float kLog2OfE = 1.4426950408889634F;
inline constexpr uint32_t kMatrixThreads = kBlockRows / kMatrixRows * kLanes;

// A lane's g and t of warp_matrix.cuh, and the first row of its warp within the block's rows.
struct FragmentPlace {
  int g, t, warp_row;
  __device__ FragmentPlace()
      : g(static_cast<int>(threadIdx.x % kLanes) / 4),
        t(static_cast<int>(threadIdx.x % 4)),
        warp_row(static_cast<int>(threadIdx.x / kLanes) * kMatrixRows) {}
  // The row of the block that holds c[2 * upper] and c[2 * upper + 1].
  __device__ int row(int upper) const { return warp_row + g + 8 * upper; }
};

// In shared memory the rows of a tile follow one another without gaps, in lines of 64 columns,
// which take all banks. Group i of eight columns of a line is where group i ^ row % 8 would be, so
// that the same group of eight rows lies in eight different banks. Returns the place in its row of
// the group at `column`, a multiple of 8, with `exchange` = row % 8. Where `column` is a multiple
// of 16, exchange = row % 8 ^ 1 finds the group after it.
__device__ constexpr int column_in_tile(int column, int exchange) {
  return (column / 8 % 8 ^ exchange) * 8 + column / kMatrixLine * kMatrixLine;
}

// This thread's part in copying tiles: kRows tokens of a tensor, of one head, in rows of kDims
// columns, of which it has the same group of each line. Everything that a copy needs except its
// first token is computed here, before the loop, so that copies begin without waiting for memory.
// The head has a multiple of 8 columns, at most kDims. With kPaged, `rows` has the row of each
// token.
template <int kRows, int kDims, bool kPaged = false>
class TileCopy {
 public:
  __device__ TileCopy(const DeviceRows& x, int head_dim, const int32_t* rows = nullptr)
      : row_(static_cast<int>(threadIdx.x) / kPieces),
        column_(static_cast<int>(threadIdx.x) % kPieces * kVectorElements),
        stride_(x.stride),
        from_(static_cast<const uint16_t*>(x.data) + (kPaged ? 0 : row_ * x.stride) + column_),
        rows_(rows),
        columns_(head_dim - column_) {}

  // Begins to copy the tokens, from `first` on, whose bits are set, of the head that begins at
  // `column`. Other tokens, which may hold anything, are not read but set to zero, as are columns
  // beyond the head.
  __device__ void begin(uint16_t* tile, int64_t first, int64_t column, uint64_t tokens) const {
    const uint64_t mine = tokens >> row_;
    uint16_t* to = tile + row_ * kDims + column_in_tile(column_, row_ % 8);
    const uint16_t* from = from_ + (kPaged ? 0 : first * stride_) + column;
#pragma unroll
    for (int row = 0; row < kRows; row += kStep) {
      const bool seen = (mine >> row & 1) != 0;
      if constexpr (kPaged)
        copy_row(to + row * kDims, from + (seen ? rows_[first + row_ + row] : 0) * stride_, seen);
      else
        copy_row(to + row * kDims, from, seen);
      if constexpr (!kPaged) from += kStep * stride_;
    }
  }

 private:
  static constexpr int kPieces = kMatrixLine / kVectorElements;             // vectors in a line
  static constexpr int kStep = static_cast<int>(kMatrixThreads) / kPieces;  // rows copied at once
  static_assert(kRows % kStep == 0 && kStep % 8 == 0);

  __device__ void copy_row(uint16_t* to, const uint16_t* from, bool seen) const {
#pragma unroll
    for (int line = 0; line < kDims; line += kMatrixLine)
      begin_copy(to + line, from + line, !seen || line >= columns_);
  }

  int row_;
  int column_;
  int64_t stride_;
  const uint16_t* from_;
  const int32_t* rows_;
  int columns_;  // of the head, from the thread's own on
};

// Columns d to d + 15 of the warp's 16 rows of a tile, as factor a.
template <int kDims>
struct TileRows {
  const uint16_t* tile;
  __device__ void load(int d, uint32_t (&a)[4]) const {
    const auto lane = static_cast<int>(threadIdx.x % kLanes);
    const int row = FragmentPlace().warp_row + lane % 16;
    load_matrices(a, tile + row * kDims + column_in_tile(d, lane % 8 ^ lane / 16));
  }
};

// The rows of a tile, read once and kept in registers.
template <int kDims>
class KeptRows {
 public:
  __device__ explicit KeptRows(const uint16_t* tile) {
#pragma unroll
    for (int i = 0; i < kDims / 16; ++i) TileRows<kDims>{tile}.load(16 * i, factors_[i]);
  }
  __device__ void load(int d, uint32_t (&a)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = factors_[d / 16][i];
  }

 private:
  uint32_t factors_[kDims / 16][4];
};

// products[j] = the warp's 16 rows times rows 8 j to 8 j + 7 of `columns`, over the head.
template <int kDims, typename Format, typename Rows, int kTiles>
__device__ void multiply_tiles(const Rows& rows, const uint16_t* columns,
                               float (&products)[kTiles][4]) {
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  // Two adjacent products are loaded at a time: the rows for both, and the two halves of 16
  // columns.
  const uint16_t* row = columns + (lane / 16 * 8 + lane % 8) * kDims;
  const int exchange = lane % 8 ^ lane / 8 % 2;
#pragma unroll
  for (int j = 0; j < kTiles; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) products[j][i] = 0.0F;
#pragma unroll
  for (int d = 0; d < kDims; d += 16) {
    uint32_t a[4];
    rows.load(d, a);
#pragma unroll
    for (int j = 0; j < kTiles; j += 2) {
      uint32_t b[4];
      load_matrices(b, row + 8 * j * kDims + column_in_tile(d, exchange));
      multiply_add(Format(), products[j], a, b[0], b[1]);
      multiply_add(Format(), products[j + 1], a, b[2], b[3]);
    }
  }
}

// sums[j] += weights (16 rows, 8 kTiles columns, in the layout in which products leave them) times
// columns 8 j to 8 j + 7 of the 8 kTiles rows of `values`, which may begin at any line of the tile.
template <int kDims, typename Format, int kTiles, int kSums>
__device__ void add_weighted_tiles(const float (&weights)[kTiles][4], const uint16_t* values,
                                   float (&sums)[kSums][4]) {
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  const int exchange = lane % 8 ^ lane / 16;
#pragma unroll
  for (int k = 0; k < kTiles; k += 2) {
    const uint32_t a[4] = {Format::narrow_pair(weights[k][0], weights[k][1]),
                           Format::narrow_pair(weights[k][2], weights[k][3]),
                           Format::narrow_pair(weights[k + 1][0], weights[k + 1][1]),
                           Format::narrow_pair(weights[k + 1][2], weights[k + 1][3])};
    const uint16_t* row = values + (8 * k + lane % 16) * kDims;
#pragma unroll
    for (int j = 0; j < kSums; j += 2) {
      uint32_t b[4];
      load_transposed(b, row + column_in_tile(8 * j, exchange));
      multiply_add(Format(), sums[j], a, b[0], b[1]);
      multiply_add(Format(), sums[j + 1], a, b[2], b[3]);
    }
  }
}

// Rows of one head of a tensor, starting at `first`.
struct HeadRows {
  const DeviceRows& x;
  int64_t first;
  int64_t rows;  // the number of rows in the tensor
  int64_t column;
  int columns;  // of the head, from `column` on: a multiple of 8; others are not written
};

// Writes the warp's rows of one head; rows g and g + 8 are multiplied by their `scale`.
template <int kSums>
__device__ void store_tiles(const HeadRows& target, const float (&scale)[2],
                            const float (&sums)[kSums][4]) {
  const FragmentPlace place;
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    const int64_t row = target.first + place.row(upper);
    if (row >= target.rows) continue;
    const int64_t element = row * target.x.stride + target.column + 2 * place.t;
#pragma unroll
    for (int j = 0; j < kSums; ++j) {
      if (8 * j >= target.columns) continue;
#pragma unroll
      for (int odd = 0; odd < 2; ++odd)
        store_one(target.x, element + 8 * j + odd, sums[j][2 * upper + odd] * scale[upper]);
    }
  }
}

// A block that goes through no tiles still waits for its own rows.
__device__ inline void finish_batches() {
  end_batch();
  wait_for_batches<0>();
}

template <int kTiles>
__device__ void clear_tiles(float (&sums)[kTiles][4]) {
#pragma unroll
  for (int j = 0; j < kTiles; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[j][i] = 0.0F;
}

__device__ inline TokenRange range_at(const TokenRange* ranges, int64_t row, int64_t rows) {
  return row < rows ? ranges[row] : TokenRange{};
}

// The consecutive columns of a tile that a row sees.
struct SeenColumns {
  int32_t first;
  uint32_t count;
  __device__ SeenColumns(const TokenRange& range, int32_t tile)
      : first(range.begin - tile), count(static_cast<uint32_t>(range.end - range.begin)) {}
  __device__ bool contains(int column) const {
    return static_cast<uint32_t>(column - first) < count;
  }
};

// A tile of the other side: its first token, and one bit for each of its tokens that some row of
// the block sees. No bits: the loop has ended.
struct SeenTile {
  int32_t token;
  uint64_t tokens;
  __device__ bool is_end() const { return tokens == 0; }
};

// A mask with the lowest `count` of 32 bits set; none if `count` is negative.
__device__ inline uint32_t low_bits(int32_t count) {
  return count >= kLanes ? 0xffffffffU : ~(0xffffffffU << (count > 0 ? count : 0));
}

// The ranges that the block's 64 rows see of the other side, two rows per lane; every warp of the
// block has the same. With kPaged, tiles begin at multiples of their size, and are far apart where
// segments are.
template <bool kPaged = false>
class BlockRanges {
 public:
  __device__ BlockRanges(const TokenRange* ranges, int64_t first, int64_t rows) {
    const auto lane = static_cast<int>(threadIdx.x % kLanes);
    begin_ = 0x7fffffff;
    end_ = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      mine_[half] = range_at(ranges, first + lane + half * kLanes, rows);
      const bool empty = mine_[half].begin >= mine_[half].end;
      begin_ = !empty && mine_[half].begin < begin_ ? mine_[half].begin : begin_;
      end_ = mine_[half].end > end_ ? mine_[half].end : end_;
      own_ |= uint64_t{__ballot_sync(kWholeWarp, !empty)} << (half * kLanes);
    }
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
      const int32_t begin = __shfl_xor_sync(kWholeWarp, begin_, lanes);
      const int32_t end = __shfl_xor_sync(kWholeWarp, end_, lanes);
      begin_ = begin < begin_ ? begin : begin_;
      end_ = end > end_ ? end : end_;
    }
  }

  // One bit for each of the block's rows that sees anything.
  __device__ uint64_t own() const { return own_; }

  // The first tile of kSize tokens (16, 32 or 64) that any row sees.
  template <int kSize>
  __device__ SeenTile first() const {
    return from<kSize>(kPaged ? begin_ / kSize * kSize : begin_);
  }
  // The next tile, in steps of kSize.
  template <int kSize>
  __device__ SeenTile after(const SeenTile& tile) const {
    return from<kSize>(tile.token + kSize);
  }

 private:
  template <int kSize>
  __device__ SeenTile from(int32_t token) const {
    static_assert(kSize == kLanes / 2 || kSize == kLanes || kSize == 2 * kLanes);
    for (; token < end_; token = kPaged ? next(token + kSize) / kSize * kSize : token + kSize) {
      uint64_t tokens = seen(token);
      if constexpr (kSize > kLanes) tokens |= uint64_t{seen(token + kLanes)} << kLanes;
      if constexpr (kSize < kLanes) tokens &= low_bits(kSize);
      if (tokens != 0) return {token, tokens};
    }
    return {end_, 0};
  }

  // The first token, from `token` on, that any row sees; `end_` if there is none.
  __device__ int32_t next(int32_t token) const {
    int32_t first = end_;
#pragma unroll
    for (const TokenRange& range : mine_) {
      const int32_t begin = range.begin > token ? range.begin : token;
      if (begin < range.end && begin < first) first = begin;
    }
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
      const int32_t other = __shfl_xor_sync(kWholeWarp, first, lanes);
      first = other < first ? other : first;
    }
    return first;
  }

  // The tokens, of the 32 from `token` on, that any row sees.
  __device__ uint32_t seen(int32_t token) const {
    uint32_t tokens = 0;
#pragma unroll
    for (const TokenRange& range : mine_)
      tokens |= low_bits(range.end - token) & ~low_bits(range.begin - token);
    return __reduce_or_sync(kWholeWarp, tokens);
  }

  TokenRange mine_[2];
  int32_t begin_;
  int32_t end_;
  uint64_t own_ = 0;
};

// Two stages of a pair of tiles of the other side: one is copied while the other is multiplied.
template <int kRows, int kDims>
struct TileRing {
  static constexpr int kTileElements = kRows * kDims;
  uint16_t* memory;
  __device__ uint16_t* first(int stage) const { return memory + 2 * stage * kTileElements; }
  __device__ uint16_t* second(int stage) const { return first(stage) + kTileElements; }
  __device__ uint16_t* end() const { return first(2); }
};

// Calls `function` with the columns to which the head is padded, as a type: the kernels' instances.
template <typename Function>
void with_matrix_dims(int32_t head_dim, const Function& function) {
  switch (matrix_dims(head_dim)) {
    case 64:
      return function(std::integral_constant<int, 64>());
    case 128:
      return function(std::integral_constant<int, 128>());
    case 192:
      return function(std::integral_constant<int, 192>());
    default:
      return function(std::integral_constant<int, kMaxMatrixDims>());
  }
}

inline LaunchShape matrix_tiles_of(int64_t tokens, int64_t heads, int32_t shared_bytes) {
  LaunchShape shape;
  shape.block.x = kMatrixThreads;
  shape.grid.x = static_cast<uint32_t>(ceil_div(tokens, kBlockRows));
  shape.grid.y = static_cast<uint32_t>(heads);
  shape.shared_bytes = shared_bytes;
  return shape;
}

}  // namespace snug::backends::cuda
