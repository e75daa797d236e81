// Products of small matrices in fp32 by one block of kDeltaThreads threads, for matrices in the
// GPU's memory: tiles of 64 x 64 sums, of which a thread has 4 x 4, over steps of 16 that go
// through shared memory. All threads take part, and what was written can be read afterwards.
#pragma once

#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {

inline constexpr int kDeltaThreads = 256;

// A factor (rows, columns); strides count elements, so that a transpose is a pair of strides.
struct ProductFactor {
  const float* data;
  int64_t row_stride;
  int64_t column_stride;
};
struct ProductSizes {
  int64_t m, n, k;
};

inline constexpr int kProductTile = 64;
inline constexpr int kProductDepth = 16;
using ProductTile = float[kProductDepth][kProductTile + 4];

// tile[step][i] = factor(first + i, first_step + step), where steps go along its columns; beyond
// `rows` and `steps` zeros. Adjacent threads read adjacent elements.
__device__ inline void load_tile(const ProductFactor& factor, int64_t first, int64_t rows,
                                 int64_t first_step, int64_t steps, ProductTile& tile) {
  const bool along_rows = factor.row_stride == 1;
  for (int at = static_cast<int>(threadIdx.x); at < kProductTile * kProductDepth;
       at += kDeltaThreads) {
    const int i = along_rows ? at % kProductTile : at / kProductDepth;
    const int step = along_rows ? at / kProductTile : at % kProductDepth;
    const bool is_inside = first + i < rows && first_step + step < steps;
    tile[step][i] = is_inside ? factor.data[(first + i) * factor.row_stride +
                                            (first_step + step) * factor.column_stride]
                              : 0.0F;
  }
}

// c (m, n) = a (m, k) b (k, n), or c += a b; c has no gaps between rows. It is called from many
// places, and would make kernels long if it were a part of each.
__device__ __attribute__((noinline)) inline void multiply_or_add(const ProductFactor& a,
                                                                 const ProductFactor& b, float* c,
                                                                 const ProductSizes& sizes,
                                                                 bool adds) {
  __shared__ ProductTile a_tile;
  __shared__ ProductTile b_tile;
  const int row = static_cast<int>(threadIdx.x) / 16 * 4;
  const int column = static_cast<int>(threadIdx.x) % 16 * 4;
  const ProductFactor b_across{b.data, b.column_stride, b.row_stride};
  for (int64_t i = 0; i < sizes.m; i += kProductTile)
    for (int64_t j = 0; j < sizes.n; j += kProductTile) {
      float sums[4][4] = {};
      for (int64_t k = 0; k < sizes.k; k += kProductDepth) {
        load_tile(a, i, sizes.m, k, sizes.k, a_tile);
        load_tile(b_across, j, sizes.n, k, sizes.k, b_tile);
        __syncthreads();
        for (int step = 0; step < kProductDepth; ++step)
          for (int y = 0; y < 4; ++y)
            for (int x = 0; x < 4; ++x)
              sums[y][x] += a_tile[step][row + y] * b_tile[step][column + x];
        __syncthreads();
      }
      for (int y = 0; y < 4; ++y)
        for (int x = 0; x < 4; ++x) {
          if (i + row + y >= sizes.m || j + column + x >= sizes.n) continue;
          float& to = c[(i + row + y) * sizes.n + j + column + x];
          to = adds ? to + sums[y][x] : sums[y][x];
        }
    }
  __syncthreads();
}

__device__ inline void multiply(const ProductFactor& a, const ProductFactor& b, float* c,
                                const ProductSizes& sizes) {
  multiply_or_add(a, b, c, sizes, false);
}
__device__ inline void multiply_add(const ProductFactor& a, const ProductFactor& b, float* c,
                                    const ProductSizes& sizes) {
  multiply_or_add(a, b, c, sizes, true);
}

}  // namespace snug::backends::cuda
