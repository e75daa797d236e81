// The forward pass of a tile: up to kRows rows, a row being one query of one head.
//
//   for each block of kKeyBlock keys that any of them sees: pack k and v, then
//     for each kRowStep rows of one head: scores, their softmax against the row's running largest
//     score, and their product with v added to the row's running sum (rescaled when that grows).
//
// Scores are kept times scale * log2(e), so that the softmax is a power of two.
#include "backends/cpu/kernels/attention_blocks.h"
#include "backends/cpu/kernels/exp2.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kRowStep = kBlockStep;
// A tile of 256 rows: k and v are packed once for it, and its sums and the packed blocks of a head
// of 128 (400 KiB in bf16) stay in a second-level cache.
constexpr int64_t kRows = 256;
constexpr int64_t kKeyBlock = 256;
// Scores that a mask hides, and the largest score of a row that has seen nothing: below any score,
// and far enough apart that a hidden one weighs nothing.
constexpr float kHidden = -__FLT_MAX__;
constexpr float kNothing = -1e30F;

template <typename Compute>
struct Blocks {
  int64_t width;      // head_dim filled up
  int64_t row_space;  // rows of a head in the tile, filled up
  Compute* q;         // (group * row_space, width)
  Compute* rows;      // (kKeyBlock, width): k or v before packing
  Compute* k;         // (width, kKeyBlock) units along width
  Compute* v;         // (kKeyBlock, width) units along keys
  float* scores;      // (kRowStep, kKeyBlock)
  Compute* weights;   // (kRowStep, kKeyBlock)
  float* sums;        // (group * row_space, width)
  float* largest;     // (group * row_space)
  float* totals;      // (group * row_space)
};

int64_t queries_of_tile(int64_t group) {
  return larger_of(kRowStep, kRows / group / kRowStep * kRowStep);
}

template <typename Compute>
Blocks<Compute> cut(Scratch& scratch, int64_t group, int64_t head_dim) {
  Blocks<Compute> blocks;
  blocks.width = round_up(head_dim, kBlockStep);
  blocks.row_space = queries_of_tile(group);
  const int64_t rows = group * blocks.row_space;
  blocks.q = scratch.take<Compute>(rows * blocks.width);
  blocks.rows = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.k = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.v = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.scores = scratch.take<float>(kRowStep * kKeyBlock);
  blocks.weights = scratch.take<Compute>(kRowStep * kKeyBlock);
  blocks.sums = scratch.take<float>(rows * blocks.width);
  blocks.largest = scratch.take<float>(rows);
  blocks.totals = scratch.take<float>(rows);
  return blocks;
}

template <typename Stored>
int64_t scratch_bytes(int64_t group, int64_t head_dim) {
  Scratch scratch(nullptr);
  cut<typename ComputeType<Stored>::Type>(scratch, group, head_dim);
  return scratch.bytes();
}

template <typename Stored, typename Compute>
void start(const AttentionTile& tile, const Blocks<Compute>& blocks) {
  const int64_t queries = tile.end - tile.begin;
  for (int64_t head = 0; head < tile.form.group; ++head) {
    const int64_t row = head * blocks.row_space;
    copy_rows(head_block<Stored>(tile.q, tile.begin, head, tile.form.head_dim), queries,
              tile.form.head_dim, RowBlock<Compute>{blocks.q + row * blocks.width, blocks.width},
              round_up(queries, kRowStep));
    for (int64_t i = 0; i < blocks.row_space; ++i) {
      blocks.largest[row + i] = kNothing;
      blocks.totals[row + i] = 0.0F;
    }
    store_zeros(blocks.sums + row * blocks.width, blocks.row_space * blocks.width);
  }
}

// k and v of keys [begin, begin + count).
template <typename Stored, typename Compute>
void pack_keys(const AttentionTile& tile, const Blocks<Compute>& blocks, int64_t begin,
               int64_t count) {
  const int64_t d = tile.form.head_dim;
  const int64_t padded = round_up(count, kBlockStep);
  const RowBlock<Compute> rows = {blocks.rows, blocks.width};
  const RowBlock<const Compute> copied = {blocks.rows, blocks.width};
  copy_rows(head_block<Stored>(tile.k, begin, 0, d), count, d, rows, padded);
  const int64_t units = blocks.width / kUnit<Compute>;
  transpose_units(RowBlock<const Compute>{blocks.rows, units}, padded, units,
                  RowBlock<Compute>{blocks.k, kKeyBlock});
  copy_rows(head_block<Stored>(tile.v, begin, 0, d), count, d, rows, padded);
  pair_rows(copied, padded, blocks.width, RowBlock<Compute>{blocks.v, blocks.width});
}

// Rows [row, row + kRowStep) of the tile: `count` queries of one head from `query` on.
struct Step {
  int64_t row, query, count;
};

// Keys [begin, begin + n).
struct Keys {
  int64_t begin, n;
};

// Replaces the scores of keys that query i does not see; multiplies the others by `factor`.
void hide(const AttentionForm& form, int64_t i, const Keys& keys, float factor, float* scores) {
  constexpr Int16Lanes kLane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const auto begin = static_cast<int32_t>(first_key(form, i) - keys.begin);
  const auto end = static_cast<int32_t>(end_key(form, i) - keys.begin);
  for (int64_t j = 0; j < keys.n; j += kLanes) {
    const Int16Lanes key = kLane + static_cast<int32_t>(j);
    const Int16Lanes seen = (key >= Int16Lanes{} + begin) & (key < Int16Lanes{} + end);
    store(scores + j, select(seen, load(scores + j) * factor, splat(kHidden)));
  }
}

// Scores of row `row`, the i-th of its step, to be multiplied by `factor`, into weights against the
// row's largest score so far; its totals and sums follow. n is a multiple of two vectors.
template <typename Compute>
void soften(const Blocks<Compute>& blocks, int64_t row, int64_t i, int64_t n, float factor) {
  const float* scores = blocks.scores + i * kKeyBlock;
  Compute* weights = blocks.weights + i * kKeyBlock;
  Float16Lanes largest_lanes[2] = {splat(kHidden), splat(kHidden)};
  for (int64_t j = 0; j < n; j += 2 * kLanes) {
    largest_lanes[0] = maximum(largest_lanes[0], load(scores + j) * factor);
    largest_lanes[1] = maximum(largest_lanes[1], load(scores + j + kLanes) * factor);
  }
  const float block_largest = reduce_max(maximum(largest_lanes[0], largest_lanes[1]));
  const float before = blocks.largest[row];
  // Written so that a NaN among the scores becomes the largest.
  const float largest = before >= block_largest ? before : block_largest;
  Float16Lanes total[2] = {};
  for (int64_t j = 0; j < n; j += 2 * kLanes) {
    const Float16Lanes left = exp2(load(scores + j) * factor - largest);
    const Float16Lanes right = exp2(load(scores + j + kLanes) * factor - largest);
    total[0] += left;
    total[1] += right;
    store(weights + j, left);
    store(weights + j + kLanes, right);
  }
  if (!(largest == before)) {
    const float correction = exp2(splat(before - largest))[0];
    blocks.totals[row] *= correction;
    float* sums = blocks.sums + row * blocks.width;
    for (int64_t j = 0; j < blocks.width; j += kLanes) store(sums + j, load(sums + j) * correction);
    blocks.largest[row] = largest;
  }
  blocks.totals[row] += reduce_add(total[0] + total[1]);
}

// The keys of a packed block that some row of a step sees, in whole block steps; n = 0 for none.
Keys seen_of_block(const AttentionForm& form, const Step& step, const Keys& block) {
  const int64_t begin = larger_of(block.begin, first_key(form, step.query));
  const int64_t end = smaller_of(block.begin + block.n, end_key(form, step.query + step.count - 1));
  if (begin >= end) return {begin, 0};
  const int64_t first = block.begin + (begin - block.begin) / kBlockStep * kBlockStep;
  return {first, round_up(end - first, kBlockStep)};
}

// A step's rows against a packed block of keys.
template <typename Compute>
void attend(const AttentionForm& form, const Blocks<Compute>& blocks, const Step& step,
            const Keys& block) {
  const Keys keys = seen_of_block(form, step, block);
  if (keys.n == 0) return;
  const int64_t skipped = keys.begin - block.begin;
  multiply_blocks(BlockProduct<Compute>{.a = blocks.q + step.row * blocks.width,
                                        .a_stride = blocks.width,
                                        .b = blocks.k + skipped * kUnit<Compute>,
                                        .b_stride = kKeyBlock,
                                        .c = blocks.scores,
                                        .c_stride = kKeyBlock,
                                        .m = kRowStep,
                                        .n = keys.n,
                                        .k = blocks.width,
                                        .accumulate = false});
  const float factor = form.scale * kLog2OfE;
  const bool all_seen = keys.begin >= first_key(form, step.query + step.count - 1) &&
                        keys.begin + keys.n <= end_key(form, step.query);
  for (int64_t i = 0; i < step.count; ++i) {
    if (!all_seen) hide(form, step.query + i, keys, factor, blocks.scores + i * kKeyBlock);
    soften(blocks, step.row + i, i, keys.n, all_seen ? factor : 1.0F);
  }
  for (int64_t i = step.count; i < kRowStep; ++i)
    store_zeros(blocks.weights + i * kKeyBlock, keys.n);
  multiply_blocks(BlockProduct<Compute>{.a = blocks.weights,
                                        .a_stride = kKeyBlock,
                                        .b = blocks.v + skipped * blocks.width,
                                        .b_stride = blocks.width,
                                        .c = blocks.sums + step.row * blocks.width,
                                        .c_stride = blocks.width,
                                        .m = kRowStep,
                                        .n = blocks.width,
                                        .k = keys.n,
                                        .accumulate = true});
}

template <typename Stored, typename Compute>
void finish(const AttentionTile& tile, const Blocks<Compute>& blocks) {
  for (int64_t head = 0; head < tile.form.group; ++head)
    for (int64_t i = 0; i < tile.end - tile.begin; ++i) {
      const int64_t row = head * blocks.row_space + i;
      const bool saw = !(blocks.largest[row] == kNothing);
      const float share = saw ? 1.0F / blocks.totals[row] : 0.0F;
      const float* sums = blocks.sums + row * blocks.width;
      Stored* o = static_cast<Stored*>(tile.o) + (tile.begin + i) * tile.o_stride +
                  head * tile.form.head_dim;
      for_each_lanes(tile.form.head_dim, [=](int64_t j, auto part) {
        store(o + j, load(sums + j, part) * share, part);
      });
      tile.lse[head * tile.lse_stride + tile.begin + i] =
          saw ? blocks.largest[row] * kLogOf2 + __builtin_logf(blocks.totals[row]) : 0.0F;
    }
}

template <typename Stored>
void attend_tile(const AttentionTile& tile) {
  using Compute = typename ComputeType<Stored>::Type;
  const TilesInUse tiles;
  Scratch scratch(tile.scratch);
  const auto blocks = cut<Compute>(scratch, tile.form.group, tile.form.head_dim);
  start<Stored>(tile, blocks);
  const int64_t seen_begin = first_key(tile.form, tile.begin) / kKeyBlock * kKeyBlock;
  const int64_t seen_end = end_key(tile.form, tile.end - 1);
  for (int64_t begin = seen_begin; begin < seen_end; begin += kKeyBlock) {
    const int64_t end = smaller_of(seen_end, begin + kKeyBlock);
    pack_keys<Stored>(tile, blocks, begin, end - begin);
    for (int64_t head = 0; head < tile.form.group; ++head)
      for (int64_t query = tile.begin; query < tile.end; query += kRowStep)
        attend(tile.form, blocks,
               Step{head * blocks.row_space + query - tile.begin, query,
                    smaller_of(kRowStep, tile.end - query)},
               Keys{begin, end - begin});
  }
  finish<Stored>(tile, blocks);
}

}  // namespace

extern const AttentionTileKernels kAttentionTileKernels;
const AttentionTileKernels kAttentionTileKernels = {
    .queries = queries_of_tile,
    .scratch_bytes = {scratch_bytes<float>, scratch_bytes<uint16_t>},
    .attend = {attend_tile<float>, attend_tile<uint16_t>},
};

}  // namespace snug::backends::cpu::SNUG_ISA
