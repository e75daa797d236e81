// Limits of kernels, and their scratch and shared memory. This arithmetic needs no CUDA header, so
// that plans can be made without the toolkit.
#pragma once

#include <cstdint>

#include "backends/cuda/device/launch_shape.h"

namespace snug::backends::cuda {

// The most rows in a product for decoding by the kernels without tensor cores (few_rows.h).
inline constexpr int kFewRows = 4;
// Sizes of products on the tensor cores (few_rows_matrix.h): outputs of a tile, products in a
// launch, and the bytes of x that a block keeps.
inline constexpr int kFewRowsOutputs = 16;
inline constexpr int kFewRowsParts = 3;
inline constexpr int64_t kFewRowsSharedBytes = 64 << 10;
// A block's other shared memory: for a weight stored as codes, a table with the values of every
// pair of codes; and what the kernel declares itself, for the sums of its warps and of a norm.
inline constexpr int64_t kFewRowsTableBytes = 32 << 10;
inline constexpr int64_t kFewRowsDeclaredBytes = (8 << 10) + 64;
constexpr int64_t few_rows_tiles(int64_t outputs) { return ceil_div(outputs, kFewRowsOutputs); }
// Elements of zeros after each row that a block keeps, and after all rows, which a step may read
// beyond a row's end.
inline constexpr int64_t kFewRowsPadding = 64;
inline constexpr int64_t kFewRowsZeros = 256;
// Elements from one such row to the next, chosen so that four rows that are read together are in
// different banks.
constexpr int64_t few_rows_stride(int64_t columns) { return columns + kFewRowsPadding + 32; }
constexpr int64_t few_rows_shared_bytes(int64_t rows, int64_t columns) {
  return (rows * few_rows_stride(columns) + kFewRowsZeros) * int64_t{sizeof(uint16_t)};
}
// Whether a block keeps x in shared memory, on a GPU whose blocks can have `card_bytes`; otherwise
// it reads x in place.
constexpr bool keeps_few_rows(int64_t rows, int64_t columns, bool has_codes, int64_t card_bytes) {
  const int64_t bytes = few_rows_shared_bytes(rows, columns);
  const int64_t other = kFewRowsDeclaredBytes + (has_codes ? kFewRowsTableBytes : 0);
  return bytes <= kFewRowsSharedBytes && bytes + other <= card_bytes;
}

// The largest elements of a row (top_k.h): the elements that a block sorts, and the scratch for
// what all blocks keep.
inline constexpr int64_t kTopKElements = 4096;
constexpr int64_t top_k_blocks(int64_t columns) { return ceil_div(columns, kTopKElements); }
constexpr int64_t top_k_bytes(int64_t rows, int64_t columns, int64_t k) {
  return rows * top_k_blocks(columns) * k * int64_t{sizeof(uint64_t)};
}

// Products of rows by expert (grouped_product.h): the tile of a block on tensor cores, the depth of
// a step, the steps that are copied ahead, and the tile of the plain kernel. The shared memory is
// that of the largest form, in which both factors have the depth within a line.
inline constexpr int kGroupedTile = 128;
inline constexpr int kGroupedDepth = 32;
inline constexpr int kGroupedStages = 4;
inline constexpr int kGroupedPlainTile = 16;
inline constexpr int32_t kGroupedSharedBytes =
    kGroupedStages * 2 * kGroupedTile * (kGroupedDepth + 8) * int32_t{sizeof(uint16_t)};

// A router's loads for the balance loss (route.h): a block of this many tokens writes the load of
// each expert, and meanwhile keeps one for each of its four warps.
struct RouteLoad {
  int32_t count;
  float sum;
};
inline constexpr int64_t kRouteBlockTokens = 64;
inline constexpr int kRouteBlockWarps = 4;
constexpr int64_t route_load_bytes(int64_t tokens, int64_t experts) {
  return ceil_div(tokens, kRouteBlockTokens) * experts * int64_t{sizeof(RouteLoad)};
}
constexpr int64_t route_shared_bytes(int64_t experts) {
  return kRouteBlockWarps * experts * int64_t{sizeof(RouteLoad)};
}

// The most layers whose loads one launch adds up (balance_loss.h), limited by the size of a
// kernel's arguments.
inline constexpr int kBalanceLayers = 240;
constexpr int64_t balance_launches(int64_t layers) { return ceil_div(layers, kBalanceLayers); }

// Products with a thin side (thin_product.h): the largest thin side, and the wide side and depth of
// a block's step.
inline constexpr int kMaxThin = 64;
inline constexpr int kThinWide = 64;
inline constexpr int kThinDepth = 64;

// The number of parts into which the sum is cut: four blocks per multiprocessor, as long as each
// has at least four steps and the partial sums fit in `bytes`.
constexpr int64_t thin_parts(int64_t wide, int64_t depth, int64_t thin, int64_t multiprocessors,
                             int64_t bytes) {
  const int64_t wanted = ceil_div(4 * multiprocessors, ceil_div(wide, kThinWide));
  const int64_t by_depth = ceil_div(depth, 4 * kThinDepth);
  const int64_t by_bytes = bytes / (wide * thin * int64_t{sizeof(float)});
  const int64_t parts = wanted < by_depth ? wanted : by_depth;
  const int64_t most = parts < by_bytes ? parts : by_bytes;
  return most < 1 ? 1 : most;
}

// Sums over the rows of a matrix (column_sums.h): at most 64 blocks of rows, with at least 64 rows
// each.
constexpr int64_t column_sum_block_rows(int64_t rows) {
  const int64_t share = ceil_div(rows, 64);
  return share < 64 ? 64 : share;
}
constexpr int64_t column_sum_blocks(int64_t rows) {
  return ceil_div(rows, column_sum_block_rows(rows));
}
constexpr int64_t column_sums_bytes(int64_t rows, int64_t columns) {
  return column_sum_blocks(rows) * columns * int64_t{sizeof(float)};
}

// The gradient of a norm's weight (rms_norm.h): blocks of at least eight rows, so that their sums
// are small compared with what is read, and enough rows that the sums of all blocks take at most 8
// MiB (2^21 floats).
constexpr int64_t norm_block_rows(int64_t rows, int64_t columns) {
  const int64_t share = ceil_div(rows * columns, int64_t{1} << 21);
  return share < 8 ? 8 : share;
}
constexpr int64_t norm_blocks(int64_t rows, int64_t columns) {
  return ceil_div(rows, norm_block_rows(rows, columns));
}
// The sums of the blocks, followed by the scratch for adding them up.
constexpr int64_t norm_partial_floats(int64_t rows, int64_t columns) {
  return norm_blocks(rows, columns) * columns;
}
constexpr int64_t norm_weight_grad_bytes(int64_t rows, int64_t columns) {
  return norm_partial_floats(rows, columns) * int64_t{sizeof(float)} +
         column_sums_bytes(norm_blocks(rows, columns), columns);
}
constexpr int64_t norm_shared_bytes(int64_t columns) { return columns * int64_t{sizeof(float)}; }

// The most tensors that one launch rotates or writes to a cache (rope.h).
inline constexpr int kRotationParts = 4;

// A sum of squares (optimizer.h) consists of partial sums over this many elements of a row.
inline constexpr int64_t kNormElements = 16384;
constexpr int64_t norm_partials(int64_t rows, int64_t columns) {
  return rows * ceil_div(columns, kNormElements);
}
// If there are more partial sums than one block adds up, each block writes the sum of this many, in
// fp64 after the partial sums, at an even index of floats.
inline constexpr int64_t kNormBlockPartials = 4096;
constexpr int64_t norm_sums(int64_t partials) {
  return partials <= kNormBlockPartials ? 0 : ceil_div(partials, kNormBlockPartials);
}
constexpr int64_t norm_sums_offset(int64_t partials) { return (partials + 1) / 2 * 2; }
constexpr int64_t norm_scratch_bytes(int64_t partials) {
  if (norm_sums(partials) == 0) return partials * int64_t{sizeof(float)};
  return norm_sums_offset(partials) * int64_t{sizeof(float)} +
         norm_sums(partials) * int64_t{sizeof(double)};
}

// The most tensors that one launch of an optimizer steps, limited by the size of a kernel's
// arguments.
inline constexpr int kTensorsPerStep = 56;
inline constexpr int kTensorsPer8bitStep = 24;

// Adafactor (adafactor.h): the tile of a block, with one column per thread; and its scratch: one
// inverse root per column, sums over blocks of rows, one sum of the update per block, and two
// numbers.
inline constexpr int64_t kAdafactorTileColumns = 256;
inline constexpr int64_t kAdafactorTileRows = 64;
constexpr int64_t adafactor_tiles(int64_t rows, int64_t columns) {
  return ceil_div(rows, kAdafactorTileRows) * ceil_div(columns, kAdafactorTileColumns);
}
constexpr int64_t adafactor_scratch_bytes(int64_t rows, int64_t columns, bool factored) {
  const int64_t sums = factored ? column_sum_blocks(rows) * columns : 0;
  return (columns + sums + adafactor_tiles(rows, columns) + 2) * int64_t{sizeof(float)};
}

// Attention (attention.h): tokens [begin, end); (0, 0) is empty.
struct TokenRange {
  int32_t begin = 0;
  int32_t end = 0;
};

// The tables of segments (segments.h): one for each tensor of an attention's gradient or of the
// forward pass, and the most segments in each.
inline constexpr int kSegmentTables = 9;
inline constexpr int kForwardTables = 5;
inline constexpr int64_t kMaxSegments = 1024;
// Entries from one table of beginnings to the next: one for each segment and one for the end,
// rounded up so that every table begins at a multiple of 16 bytes, as its descriptor says.
constexpr int64_t segment_table_entries(int64_t segments) { return (segments + 2) / 2 * 2; }

inline constexpr int32_t kMaxHeadDim = 512;

// The columns of a head that one lane keeps: a power of two.
constexpr int32_t lane_columns(int64_t head_dim) {
  int32_t columns = 1;
  while (columns * kLanes < head_dim) columns *= 2;
  return columns;
}

// The rows of its own side that a warp keeps, those of a block of four warps, and the rows of the
// other side in a tile, of which a lane has one. Wide heads get fewer, so that the gradient fits in
// 99 KiB, the shared memory of a block on most GPUs; above 256 columns half of the lanes have none.
inline constexpr int kTileWarps = 4;
constexpr int warp_rows(int columns) { return columns > 8 ? 2 : columns > 4 ? 4 : 8; }
constexpr int tile_rows(int columns) { return columns > 8 ? kLanes / 2 : kLanes; }
constexpr int own_rows(int columns) { return kTileWarps * warp_rows(columns); }

// Floats from one row of a tile to the next: one more than the columns, so that lanes that read one
// column of 32 rows use 32 banks.
constexpr int tile_stride(int columns) { return columns * kLanes + 1; }
constexpr int tile_floats(int rows, int columns) { return rows * tile_stride(columns); }
// The shared memory of a block with `own_tiles` tiles of its own rows, two tiles of the other side,
// and the weights of its rows for such a tile.
constexpr int32_t tiles_bytes(int own_tiles, int columns) {
  const int own = own_tiles * tile_floats(own_rows(columns), columns);
  return (own + 2 * tile_floats(tile_rows(columns), columns) + own_rows(columns) * kLanes) *
         int32_t{sizeof(float)};
}

// Attention on the tensor cores: the most columns of a 16-bit head (a multiple of 8), those where
// scores have a relative position bias, the rows of the block's own side, and the most keys in a
// tile of the other side.
inline constexpr int32_t kMaxMatrixDims = 256;
inline constexpr int32_t kMaxBiasedMatrixDims = 128;
inline constexpr int kBlockRows = 64;
inline constexpr int kMatrixKeys = 64;
// With pages, the numbers of a segment's keys, of which it has so many at most: whole tiles.
constexpr int64_t key_places(int64_t most_keys) {
  static_assert(kMatrixKeys % kLanes == 0);
  return ceil_div(most_keys, kMatrixKeys) * kMatrixKeys;
}
// The columns to which a head is padded there: whole lines of 64, which are 128 bytes.
inline constexpr int32_t kMatrixLine = 64;
constexpr int32_t matrix_dims(int64_t head_dim) {
  return static_cast<int32_t>(ceil_div(head_dim, kMatrixLine)) * kMatrixLine;
}
// The rows of a tile of the other side, in the forward pass and in the gradient. Of heads above 128
// they are half as many, so that a block fits in 99 KiB, the shared memory of most GPUs.
constexpr int matrix_keys(int dims) { return dims > 128 ? kMatrixKeys / 2 : kMatrixKeys; }
constexpr int matrix_grad_columns(int dims) { return matrix_keys(dims) / 2; }
// Whether dk and dv are summed by a kernel each, since the registers of a block do not hold both.
constexpr bool sums_values_apart(int dims) { return dims > 128; }
// The size in bytes of `kept` tiles of the block's own rows and four tiles of the other side.
constexpr int32_t matrix_shared_bytes(int kept, int columns, int dims) {
  return (kept * kBlockRows + 4 * columns) * dims * int32_t{sizeof(uint16_t)};
}
constexpr int32_t attention_matrix_shared_bytes(int64_t head_dim) {
  const int32_t dims = matrix_dims(head_dim);
  return matrix_shared_bytes(1, matrix_keys(dims), dims);
}
// The gradient keeps two stages of the state of each query in a tile: the keys that it sees, its
// log-sum-exp, and the dot product of its output with the output's gradient.
inline constexpr int32_t kQueryStateBytes = 16;
constexpr int32_t grad_matrix_shared_bytes(int kept, int dims) {
  const int columns = matrix_grad_columns(dims);
  return matrix_shared_bytes(kept, columns, dims) + 2 * columns * kQueryStateBytes;
}
constexpr int32_t attention_grad_matrix_shared_bytes(int64_t head_dim) {
  return grad_matrix_shared_bytes(2, matrix_dims(head_dim));
}
// Of the kernel that sums the gradient of values alone.
constexpr int32_t attention_values_matrix_shared_bytes(int64_t head_dim) {
  return grad_matrix_shared_bytes(1, matrix_dims(head_dim));
}

// The shared memory of a block that keeps queries, or queries and their gradients, together with
// tiles of keys and values, or the other way round.
constexpr int32_t attention_shared_bytes(int64_t head_dim) {
  return tiles_bytes(1, lane_columns(head_dim));
}
constexpr int32_t attention_grad_shared_bytes(int64_t head_dim) {
  return tiles_bytes(2, lane_columns(head_dim));
}

}  // namespace snug::backends::cuda
