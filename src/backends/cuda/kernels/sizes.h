// Limits of kernels, and the scratch and shared memory that they take: arithmetic that needs no
// CUDA header, so that plans are made where there is no toolkit.
#pragma once

#include <cstdint>

#include "backends/cuda/device/launch_shape.h"

namespace snug::backends::cuda {

// Rows of a product that is decoding (few_rows.h).
inline constexpr int kFewRows = 4;
// Sizes of products on the tensor cores (few_rows_matrix.h): outputs of a tile, products of a
// launch, and the bytes of x that a block keeps.
inline constexpr int kFewRowsOutputs = 16;
inline constexpr int kFewRowsParts = 3;
inline constexpr int64_t kFewRowsSharedBytes = 64 << 10;
// What a block keeps next to x: where the weight is codes a table of the values of every two, and
// what the kernel declares itself, the sums of its warps and of a norm.
inline constexpr int64_t kFewRowsTableBytes = 32 << 10;
inline constexpr int64_t kFewRowsDeclaredBytes = (8 << 10) + 64;
constexpr int64_t few_rows_tiles(int64_t outputs) { return ceil_div(outputs, kFewRowsOutputs); }
// Elements of zeros after each row that a block keeps, and after all rows: what a step reads that
// a row does not have.
inline constexpr int64_t kFewRowsPadding = 64;
inline constexpr int64_t kFewRowsZeros = 256;
// Elements from one such row to the next: so that four rows that are read together lie in different
// banks.
constexpr int64_t few_rows_stride(int64_t columns) { return columns + kFewRowsPadding + 32; }
constexpr int64_t few_rows_shared_bytes(int64_t rows, int64_t columns) {
  return (rows * few_rows_stride(columns) + kFewRowsZeros) * int64_t{sizeof(uint16_t)};
}
// Whether a block keeps x, on a card whose blocks may ask for so many bytes; else it reads x where
// it lies.
constexpr bool keeps_few_rows(int64_t rows, int64_t columns, bool has_codes, int64_t card_bytes) {
  const int64_t bytes = few_rows_shared_bytes(rows, columns);
  const int64_t other = kFewRowsDeclaredBytes + (has_codes ? kFewRowsTableBytes : 0);
  return bytes <= kFewRowsSharedBytes && bytes + other <= card_bytes;
}

// The largest elements of a row (top_k.h): what a block looks at, and what all blocks keep.
inline constexpr int64_t kTopKElements = 4096;
constexpr int64_t top_k_blocks(int64_t columns) { return ceil_div(columns, kTopKElements); }
constexpr int64_t top_k_bytes(int64_t rows, int64_t columns, int64_t k) {
  return rows * top_k_blocks(columns) * k * int64_t{sizeof(uint64_t)};
}

// Products of rows by expert (grouped_product.h): the tile of a block on tensor cores, the depth of
// a step, the steps that are copied ahead, and the tile of the plain kernel. Shared memory is that
// of the form that takes most, both factors with the depth within a line.
inline constexpr int kGroupedTile = 128;
inline constexpr int kGroupedDepth = 32;
inline constexpr int kGroupedStages = 4;
inline constexpr int kGroupedPlainTile = 16;
inline constexpr int32_t kGroupedSharedBytes =
    kGroupedStages * 2 * kGroupedTile * (kGroupedDepth + 8) * int32_t{sizeof(uint16_t)};

// What a router gives to the loss that balances experts (route.h): blocks of so many tokens leave
// what each expert gets of theirs, and keep it for each of their four warps meanwhile.
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

// Layers whose loads one launch adds up (balance_loss.h): what fits into a kernel's arguments.
inline constexpr int kBalanceLayers = 240;
constexpr int64_t balance_launches(int64_t layers) { return ceil_div(layers, kBalanceLayers); }

// Products with a thin side (thin_product.h): of a block, and of one step of its sum.
inline constexpr int kMaxThin = 64;
inline constexpr int kThinWide = 64;
inline constexpr int kThinDepth = 64;

// Into how many parts the sum is cut: four blocks a multiprocessor, where each still has four steps
// and the partial sums fit into so many bytes.
constexpr int64_t thin_parts(int64_t wide, int64_t depth, int64_t thin, int64_t multiprocessors,
                             int64_t bytes) {
  const int64_t wanted = ceil_div(4 * multiprocessors, ceil_div(wide, kThinWide));
  const int64_t by_depth = ceil_div(depth, 4 * kThinDepth);
  const int64_t by_bytes = bytes / (wide * thin * int64_t{sizeof(float)});
  const int64_t parts = wanted < by_depth ? wanted : by_depth;
  const int64_t most = parts < by_bytes ? parts : by_bytes;
  return most < 1 ? 1 : most;
}

// Sums over the rows of a matrix (column_sums.h): at most 64 blocks of rows, of at least 64 rows
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
// are a small part of what is read, and of so many that all blocks' sums are at most 8 MiB (2^21
// floats).
constexpr int64_t norm_block_rows(int64_t rows, int64_t columns) {
  const int64_t share = ceil_div(rows * columns, int64_t{1} << 21);
  return share < 8 ? 8 : share;
}
constexpr int64_t norm_blocks(int64_t rows, int64_t columns) {
  return ceil_div(rows, norm_block_rows(rows, columns));
}
// The blocks' sums, then what adding them up takes.
constexpr int64_t norm_partial_floats(int64_t rows, int64_t columns) {
  return norm_blocks(rows, columns) * columns;
}
constexpr int64_t norm_weight_grad_bytes(int64_t rows, int64_t columns) {
  return norm_partial_floats(rows, columns) * int64_t{sizeof(float)} +
         column_sums_bytes(norm_blocks(rows, columns), columns);
}
constexpr int64_t norm_shared_bytes(int64_t columns) { return columns * int64_t{sizeof(float)}; }

// Tensors that a launch rotates or writes to a cache (rope.h), each of them once.
inline constexpr int kRotationParts = 4;

// A sum of squares (optimizer.h) is made of the sums of so many elements of a row each.
inline constexpr int64_t kNormElements = 16384;
constexpr int64_t norm_partials(int64_t rows, int64_t columns) {
  return rows * ceil_div(columns, kNormElements);
}
// Where there are more than a block adds up, each block leaves the sum of so many, in fp64 after
// them, at an even float.
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

// Tensors that one launch of an optimizer steps: what fits into a kernel's arguments.
inline constexpr int kTensorsPerStep = 56;
inline constexpr int kTensorsPer8bitStep = 24;

// Adafactor (adafactor.h): elements of a block, a column of them a thread; and its scratch: an
// inverse root a column, sums over blocks of rows, one of the update for each block, two numbers.
inline constexpr int64_t kAdafactorTileColumns = 256;
inline constexpr int64_t kAdafactorTileRows = 64;
constexpr int64_t adafactor_tiles(int64_t rows, int64_t columns) {
  return ceil_div(rows, kAdafactorTileRows) * ceil_div(columns, kAdafactorTileColumns);
}
constexpr int64_t adafactor_scratch_bytes(int64_t rows, int64_t columns, bool factored) {
  const int64_t sums = factored ? column_sum_blocks(rows) * columns : 0;
  return (columns + sums + adafactor_tiles(rows, columns) + 2) * int64_t{sizeof(float)};
}

// Attention (attention.h). Tokens [begin, end); empty is (0, 0).
struct TokenRange {
  int32_t begin = 0;
  int32_t end = 0;
};

// Tables of segments (segments.h): one for each tensor of an attention, and of the forward pass
// alone; and of how many segments.
inline constexpr int kSegmentTables = 9;
inline constexpr int kForwardTables = 5;
inline constexpr int64_t kMaxSegments = 1024;
// Entries from one table of beginnings to the next: one for each segment and the end, and so many
// that every table begins at a multiple of 16 bytes, which is what its descriptor promises.
constexpr int64_t segment_table_entries(int64_t segments) { return (segments + 2) / 2 * 2; }

inline constexpr int32_t kMaxHeadDim = 256;
inline constexpr int kTileRows = kLanes;  // of the side that a block walks: one a lane

// Columns of a head that one lane keeps: a power of two.
constexpr int32_t lane_columns(int64_t head_dim) {
  int32_t columns = 1;
  while (columns * kLanes < head_dim) columns *= 2;
  return columns;
}

// Rows that a warp, and a block of four, keep of their own side. The widest heads get half as many:
// the gradient of 256 columns then fits into 99 KiB, which is what a block of most cards may have.
inline constexpr int kTileWarps = 4;
constexpr int warp_rows(int columns) { return columns > 4 ? 4 : 8; }
constexpr int own_rows(int columns) { return kTileWarps * warp_rows(columns); }

// Floats from one row of a tile to the next: one more than the columns, so that lanes that read one
// column of 32 rows meet 32 banks.
constexpr int tile_stride(int columns) { return columns * kLanes + 1; }
constexpr int tile_floats(int rows, int columns) { return rows * tile_stride(columns); }
// Of a block that has so many tiles of its own rows, two of the other side, and the weights of its
// rows for a tile of that side.
constexpr int32_t tiles_bytes(int own_tiles, int columns) {
  const int own = own_tiles * tile_floats(own_rows(columns), columns);
  return (own + 2 * tile_floats(kTileRows, columns) + own_rows(columns) * kLanes) *
         int32_t{sizeof(float)};
}

// Attention on the tensor cores: bf16 heads of a multiple of 8 columns and at most so many, rows of
// the block's own side, and columns of a tile of the other side.
inline constexpr int32_t kMaxMatrixDims = 128;
inline constexpr int kBlockRows = 64;
inline constexpr int kMatrixKeys = 64;
inline constexpr int kMatrixGradColumns = 32;

// Columns that a head takes there.
constexpr int32_t matrix_dims(int64_t head_dim) { return head_dim <= 64 ? 64 : kMaxMatrixDims; }
// Elements from one row of a tile to the next: 16 bytes more than the head, so that eight rows that
// are read together lie in different banks.
constexpr int matrix_stride(int dims) { return dims + 8; }
// The bytes of `kept` tiles of the block's own rows and four of the other side.
constexpr int32_t matrix_shared_bytes(int kept, int columns, int dims) {
  return (kept * kBlockRows + 4 * columns) * matrix_stride(dims) * int32_t{sizeof(uint16_t)};
}
constexpr int32_t attention_matrix_shared_bytes(int64_t head_dim) {
  return matrix_shared_bytes(1, kMatrixKeys, matrix_dims(head_dim));
}
// The gradient keeps twice what each query of a tile gives to its scores: what it sees, its
// log-sum-exp, and the dot product of its output and that one's gradient.
inline constexpr int32_t kQueryStateBytes = 16;
constexpr int32_t attention_grad_matrix_shared_bytes(int64_t head_dim) {
  return matrix_shared_bytes(2, kMatrixGradColumns, matrix_dims(head_dim)) +
         2 * kMatrixGradColumns * kQueryStateBytes;
}

// Shared memory that a block takes: queries, or queries and their gradients, next to keys and
// values; or the other way round.
constexpr int32_t attention_shared_bytes(int64_t head_dim) {
  return tiles_bytes(1, lane_columns(head_dim));
}
constexpr int32_t attention_grad_shared_bytes(int64_t head_dim) {
  return tiles_bytes(2, lane_columns(head_dim));
}

}  // namespace snug::backends::cuda
