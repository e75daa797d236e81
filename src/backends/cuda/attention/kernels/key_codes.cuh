// Keys and values in 8 bits as attention reads them.
#pragma once

#include "backends/cuda/attention/kernels/attention_matrix_tile.cuh"

namespace snug::backends::cuda {

// Number i of eight in two words.
__device__ inline float code_at(const uint32_t (&words)[2], int i) {
  return static_cast<float>(static_cast<int8_t>(words[i / 4] >> (8 * (i % 4)) & 0xffU));
}

// TileCopy of keys or values in 8 bits, whose rows begin at multiples of 8 bytes. They are widened
// to bf16, which holds each of them exactly, and are there for all after the block's next barrier.
template <int kRows, int kDims>
class CodesCopy {
 public:
  __device__ CodesCopy(const DeviceRows& x, int head_dim, const int32_t* rows)
      : row_(static_cast<int>(threadIdx.x) / kPieces),
        column_(static_cast<int>(threadIdx.x) % kPieces * kVectorElements),
        stride_(x.stride),
        from_(static_cast<const int8_t*>(x.data) + column_),
        rows_(rows),
        columns_(head_dim - column_) {}

  __device__ void begin(uint16_t* tile, int64_t first, int64_t column, uint64_t tokens) const {
    const uint64_t mine = tokens >> row_;
    uint32_t words[kCopied][2];
#pragma unroll
    for (int i = 0; i < kCopied; ++i) {
      const int row = i / kLines * kStep;
      const int line = i % kLines * kMatrixLine;
      const bool seen = (mine >> row & 1) != 0 && line < columns_;
      const auto* from = reinterpret_cast<const uint32_t*>(
          from_ + (seen ? rows_[first + row_ + row] : 0) * stride_ + column + line);
      words[i][0] = seen ? from[0] : 0;
      words[i][1] = seen ? from[1] : 0;
    }
    uint16_t* to = tile + row_ * kDims + column_in_tile(column_, row_ % 8);
#pragma unroll
    for (int i = 0; i < kCopied; ++i) {
      Vector16 wide;
      for (int pair = 0; pair < 4; ++pair)
        wide.word[pair] =
            Bf16::narrow_pair(code_at(words[i], 2 * pair), code_at(words[i], 2 * pair + 1));
      store_vector(to + i / kLines * kStep * kDims + i % kLines * kMatrixLine, wide);
    }
  }

 private:
  static constexpr int kPieces = kMatrixLine / kVectorElements;
  static constexpr int kLines = kDims / kMatrixLine;
  static constexpr int kStep = static_cast<int>(kMatrixThreads) / kPieces;
  static constexpr int kCopied = kRows / kStep * kLines;  // vectors of a tile that a thread copies

  int row_;
  int column_;
  int64_t stride_;
  const int8_t* from_;
  const int32_t* rows_;
  int columns_;  // of the head, from the thread's own on
};

// The scales of the keys and values of two stages of tiles, in shared memory.
template <int kKeys>
struct TileScales {
  float keys[2][kKeys];
  float values[2][kKeys];

  // Reads those of the tokens of a tile that some row sees, of a head.
  __device__ void read(int stage, const SeenTile& tile, const int32_t* rows, const float* of_keys,
                       const float* of_values) {
    const auto token = static_cast<int>(threadIdx.x);
    if (token >= kKeys) return;
    const bool seen = (tile.tokens >> token & 1) != 0;
    const int64_t row = seen ? rows[tile.token + token] : 0;
    keys[stage][token] = seen ? of_keys[row] : 0.0F;
    values[stage][token] = seen ? of_values[row] : 0.0F;
  }
};

// Multiplies the columns of scores, or of weights, by their scales.
template <int kTiles>
__device__ void scale_columns(float (&scores)[kTiles][4], const float* scales) {
  const FragmentPlace place;
#pragma unroll
  for (int j = 0; j < kTiles; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[j][i] *= scales[8 * j + 2 * place.t + i % 2];
}

}  // namespace snug::backends::cuda
