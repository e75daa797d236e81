// The forward pass of a tile: up to kRows rows, where a row is one query of one head.
//
//   for each block of kKeyBlock keys that any of them sees: pack k and v, then
//     for each kRowStep rows of one head: scores with keys as their rows, their softmax relative to
//     the rows' largest scores so far, and v^T times the weights, which is added to the running
//     sums (rescaled where a largest score grew).
//
// Keys are the rows of the scores, so that each query has a lane for its statistics and the weights
// are already laid out as the right factor of the second product. Scores are multiplied by scale *
// log2(e), so that the softmax uses powers of two. Keys and values in 8 bits are packed as they
// are, which every compute type holds exactly; the scale of a key multiplies its row of scores,
// that of a value its row of weights.
#include "backends/cpu/attention/kernels/attention_blocks.h"
#include "backends/cpu/attention/kernels/score_adjustment.h"
#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/exp2.h"
#include "backends/cpu/kernels/row_end.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kRowStep = 32;
// Rows in a tile: k and v are packed once per tile, and for head_dim 128 its sums and packed blocks
// (420 KiB in bf16) stay in the second-level cache.
constexpr int64_t kRows = 512;
// Small enough that the data between the two products and the softmax, about 20 KiB for head_dim 64
// in bf16, stays in the first-level cache.
constexpr int64_t kKeyBlock = 32;
static_assert(kRowStep <= kKeyBlock, "q is packed by way of a block of keys");
// How far, as a power of two, a row's scores may exceed the reference of its weights before its
// sums are rescaled. After the first block that hardly ever happens.
constexpr float kMaxGrowth = 8.0F;
// The score of a masked key, and the initial largest score of a row: both are below any score, and
// so far apart that a masked key gets weight 0.
constexpr float kHidden = -__FLT_MAX__;
constexpr float kNothing = -1e30F;

template <typename Compute>
struct Blocks {
  int64_t width;            // head_dim, padded
  int64_t row_space;        // rows of a head in the tile, padded
  Compute* q;               // (width, kRowStep) units along width, for every kRowStep rows
  Compute *rows, *pairs;    // (kKeyBlock, width): intermediate results of packing
  Compute* k;               // (kKeyBlock, width)
  Compute* v_turned;        // transposed: (width, kKeyBlock)
  float* scores;            // (kKeyBlock, kRowStep)
  Compute* weights;         // (kKeyBlock, kRowStep) units along keys
  float* sums;              // (width, kRowStep) for every kRowStep rows
  float *largest, *totals;  // (group * row_space)
  float* o_rows;            // (kRowStep, width)
  // (kKeyBlock): of keys and values in 8 bits; zero for keys that pad the block.
  float *key_scales, *value_scales;
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
  blocks.pairs = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.k = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.v_turned = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.scores = scratch.take<float>(kRowStep * kKeyBlock);
  blocks.weights = scratch.take<Compute>(kRowStep * kKeyBlock);
  blocks.sums = scratch.take<float>(rows * blocks.width);
  blocks.largest = scratch.take<float>(rows);
  blocks.totals = scratch.take<float>(rows);
  blocks.o_rows = scratch.take<float>(kRowStep * blocks.width);
  blocks.key_scales = scratch.take<float>(kKeyBlock);
  blocks.value_scales = scratch.take<float>(kKeyBlock);
  return blocks;
}

template <typename Stored>
int64_t scratch_bytes(int64_t group, int64_t head_dim) {
  Scratch scratch(nullptr);
  cut<typename ComputeType<Stored>::Type>(scratch, group, head_dim);
  return scratch.bytes();
}

// Rows [row, row + kRowStep) of the tile: `count` queries of head `head`, starting at `query`.
struct Step {
  int64_t row, head, query, count;
};

// Keys [begin, begin + n).
struct Keys {
  int64_t begin, n;
};

template <typename Stored, typename Compute>
void start(const AttentionTile& tile, const Blocks<Compute>& blocks, const Step& step) {
  const int64_t d = tile.form.head_dim;
  const int64_t units = blocks.width / kUnit<Compute>;
  copy_rows(head_block<Stored>(tile.q, step.query, step.head, d), step.count, d,
            RowBlock<Compute>{blocks.rows, blocks.width}, kRowStep);
  transpose_units(RowBlock<const Compute>{blocks.rows, units}, kRowStep, units,
                  RowBlock<Compute>{blocks.q + step.row * blocks.width, kRowStep});
  for (int64_t i = 0; i < kRowStep; ++i) {
    blocks.largest[step.row + i] = kNothing;
    blocks.totals[step.row + i] = 0.0F;
  }
  store_zeros(blocks.sums + step.row * blocks.width, kRowStep * blocks.width);
}

// Copies the keys' rows of k or v, padded to `padded` rows.
template <typename Key, typename Compute>
void copy_keys(const AttentionTile& tile, const HeadRows& rows, const Keys& keys, int64_t padded,
               RowBlock<Compute> to) {
  const int64_t d = tile.form.head_dim;
  for_each_run(tile.pages, keys.begin, keys.n, [&](const KeyRun& run) {
    const int64_t at = run.key - keys.begin;
    const bool is_last = at + run.count == keys.n;
    copy_rows(head_block<Key>(rows, run.row, 0, d), run.count, d,
              RowBlock<Compute>{to.data + at * to.stride, to.stride},
              is_last ? padded - at : run.count);
  });
}

template <typename Compute>
void pack_scales(const AttentionTile& tile, const Blocks<Compute>& blocks, const Keys& keys) {
  store_zeros(blocks.key_scales, kKeyBlock);
  store_zeros(blocks.value_scales, kKeyBlock);
  copy_scales(tile.pages, tile.k, keys.begin, keys.n, blocks.key_scales);
  copy_scales(tile.pages, tile.v, keys.begin, keys.n, blocks.value_scales);
}

template <typename Key, typename Compute>
void pack_keys(const AttentionTile& tile, const Blocks<Compute>& blocks, const Keys& keys) {
  const int64_t padded = round_up(keys.n, kBlockStep);
  copy_keys<Key>(tile, tile.k, keys, padded, RowBlock<Compute>{blocks.k, blocks.width});
  copy_keys<Key>(tile, tile.v, keys, padded, RowBlock<Compute>{blocks.rows, blocks.width});
  if constexpr (kHasScales<Key>) pack_scales(tile, blocks, keys);
  pair_rows(RowBlock<const Compute>{blocks.rows, blocks.width}, padded, blocks.width,
            RowBlock<Compute>{blocks.pairs, blocks.width});
  transpose_units(RowBlock<const Compute>{blocks.pairs, blocks.width}, padded / kUnit<Compute>,
                  blocks.width, RowBlock<Compute>{blocks.v_turned, kKeyBlock / kUnit<Compute>});
}

// Multiplies the products of each key by its scale.
template <typename Compute>
void scale_products(const Blocks<Compute>& blocks, const float* key_scales, int64_t keys) {
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t i = 0; i < kRowStep; i += kLanes) {
      float* score = blocks.scores + j * kRowStep + i;
      store(score, load(score) * key_scales[j]);
    }
}

// Turns products into scores, with scale, cap and biases; soften() then uses a factor of one.
template <typename Compute>
void adjust(const AttentionForm& form, const Blocks<Compute>& blocks, const Step& step,
            const Keys& keys) {
  const ScoreAdjustment adjustment(form, step.head);
  for (int64_t j = 0; j < keys.n; ++j)
    for (int64_t i = 0; i < kRowStep; i += kLanes) {
      float* score = blocks.scores + j * kRowStep + i;
      const Float16Lanes biases = adjustment.of_key(keys.begin + j, step.query + i);
      store(score, adjustment.at(load(score), biases).score);
    }
}

// Overwrites the scores of keys that a query does not see.
template <typename Compute>
void hide(const AttentionForm& form, const Blocks<Compute>& blocks, const Step& step,
          const Keys& keys) {
  const auto seen = seen_by<kRowStep>(form, step.query);
  for (int64_t j = 0; j < keys.n; ++j)
    for (int64_t i = 0; i < kRowStep; i += kLanes) {
      float* score = blocks.scores + j * kRowStep + i;
      store(score, select(sees(seen, i, keys.begin + j), load(score), splat(kHidden)));
    }
}

SNUG_INLINE bool any(Int16Lanes mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(mask), reinterpret_cast<__m512i>(mask)) !=
         0;
#else
  int32_t found = 0;
  for (int64_t i = 0; i < kLanes; ++i) found |= mask[i];
  return found != 0;
#endif
}

// Turns the scores of sixteen rows, starting at `row`, which is row i of its step, into weights
// relative to the largest score of each row so far, and updates totals and sums. The scores are
// first multiplied by `factor`, which is positive. The weights of values in 8 bits are multiplied
// by their scales, the totals are not.
struct Softening {
  int64_t keys;
  float factor;
  const float* value_scales;
};
template <typename Key, typename Compute>
void soften(const Blocks<Compute>& blocks, const Step& step, int64_t i,
            const Softening& softening) {
  const auto& [keys, factor, value_scales] = softening;
  const int64_t row = step.row + i;
  const float* scores = blocks.scores + i;
  Float16Lanes block_largest[4] = {splat(kHidden), splat(kHidden), splat(kHidden), splat(kHidden)};
  for (int64_t j = 0; j < keys; j += 4)
#pragma GCC unroll 4
    for (int64_t part = 0; part < 4; ++part)
      block_largest[part] = maximum(block_largest[part], load(scores + (j + part) * kRowStep));
  const Float16Lanes before = load(blocks.largest + row);
  const Float16Lanes now = maximum(maximum(block_largest[0], block_largest[1]),
                                   maximum(block_largest[2], block_largest[3])) *
                           factor;
  const Int16Lanes grew = now > before + kMaxGrowth;
  const Float16Lanes largest = select(grew, now, before);
  Float16Lanes total[2] = {};
  Compute* weights = blocks.weights + i * kUnit<Compute>;
  for (int64_t j = 0; j < keys; j += 2) {
    const Float16Lanes even =
        exp2_of_weight<Compute>(load(scores + j * kRowStep) * factor - largest);
    const Float16Lanes odd =
        exp2_of_weight<Compute>(load(scores + (j + 1) * kRowStep) * factor - largest);
    total[0] += even;
    total[1] += odd;
    if constexpr (kHasScales<Key>)
      store_pairs(weights + j * kRowStep, kRowStep, even * value_scales[j],
                  odd * value_scales[j + 1]);
    else
      store_pairs(weights + j * kRowStep, kRowStep, even, odd);
  }
  Float16Lanes totals = load(blocks.totals + row);
  if (any(grew)) {
    const Float16Lanes correction = exp2(before - largest);
    totals *= correction;
    float* sums = blocks.sums + step.row * blocks.width + i;
    for (int64_t j = 0; j < blocks.width; ++j)
      store(sums + j * kRowStep, load(sums + j * kRowStep) * correction);
    store(blocks.largest + row, largest);
  }
  store(blocks.totals + row, totals + (total[0] + total[1]));
}

// The keys of a packed block that any row of a step sees, rounded to whole block steps; n = 0 for
// none.
Keys seen_of_block(const AttentionForm& form, const Step& step, const Keys& block) {
  const int64_t begin = larger_of(block.begin, first_key(form, step.query));
  const int64_t end = smaller_of(block.begin + block.n, end_key(form, step.query + step.count - 1));
  if (begin >= end) return {begin, 0};
  const int64_t first = block.begin + (begin - block.begin) / kBlockStep * kBlockStep;
  return {first, round_up(end - first, kBlockStep)};
}

// Processes a step's rows with a packed block of keys.
template <typename Key, typename Compute>
void attend(const AttentionForm& form, const Blocks<Compute>& blocks, const Step& step,
            const Keys& block) {
  const Keys keys = seen_of_block(form, step, block);
  if (keys.n == 0) return;
  const int64_t skipped = keys.begin - block.begin;
  multiply_blocks(BlockProduct<Compute>{.a = blocks.k + skipped * blocks.width,
                                        .a_stride = blocks.width,
                                        .b = blocks.q + step.row * blocks.width,
                                        .b_stride = kRowStep,
                                        .c = blocks.scores,
                                        .c_stride = kRowStep,
                                        .m = keys.n,
                                        .n = kRowStep,
                                        .k = blocks.width,
                                        .accumulate = false});
  if constexpr (kHasScales<Key>) scale_products(blocks, blocks.key_scales + skipped, keys.n);
  const bool adjusts = are_adjusted(form);
  if (adjusts) adjust(form, blocks, step, keys);
  const bool all_seen = keys.begin >= first_key(form, step.query + step.count - 1) &&
                        keys.begin + keys.n <= end_key(form, step.query);
  if (!all_seen) hide(form, blocks, step, keys);
  const Softening softening{keys.n, adjusts ? 1.0F : form.scale * kLog2OfE,
                            blocks.value_scales + skipped};
  for (int64_t i = 0; i < kRowStep; i += kLanes) soften<Key>(blocks, step, i, softening);
  multiply_blocks(BlockProduct<Compute>{.a = blocks.v_turned + skipped,
                                        .a_stride = kKeyBlock,
                                        .b = blocks.weights,
                                        .b_stride = kRowStep,
                                        .c = blocks.sums + step.row * blocks.width,
                                        .c_stride = kRowStep,
                                        .m = blocks.width,
                                        .n = kRowStep,
                                        .k = keys.n,
                                        .accumulate = true});
}

template <typename Stored, typename Compute>
void finish(const AttentionTile& tile, const Blocks<Compute>& blocks, const Step& step) {
  transpose_units(RowBlock<const float>{blocks.sums + step.row * blocks.width, kRowStep},
                  blocks.width, kRowStep, RowBlock<float>{blocks.o_rows, blocks.width});
  const int64_t d = tile.form.head_dim;
  for (int64_t i = 0; i < step.count; ++i) {
    const float largest = blocks.largest[step.row + i];
    const float total = blocks.totals[step.row + i];
    const bool saw = !(largest == kNothing);
    const RowEnd end =
        saw ? end_of_row<Stored>(tile, step.head, largest, total) : RowEnd{0.0F, 0.0F};
    const float share = end.share;
    const float* sums = blocks.o_rows + i * blocks.width;
    Stored* o = static_cast<Stored*>(tile.o) + (step.query + i) * tile.o_stride + step.head * d;
    for_each_lanes(d,
                   [=](int64_t j, auto part) { store(o + j, load(sums + j, part) * share, part); });
    tile.lse[step.head * tile.lse_stride + step.query + i] = end.lse;
  }
}

// Calls f(step) for all rows of the tile.
template <typename F>
SNUG_INLINE void for_each_step(const AttentionTile& tile, int64_t row_space, F f) {
  for (int64_t head = 0; head < tile.form.group; ++head)
    for (int64_t query = tile.begin; query < tile.end; query += kRowStep)
      f(Step{head * row_space + query - tile.begin, head, query,
             smaller_of(kRowStep, tile.end - query)});
}

template <typename Key, typename Stored>
void attend_tile(const AttentionTile& tile) {
  using Compute = typename ComputeType<Stored>::Type;
  const TilesInUse tiles;
  Scratch scratch(tile.scratch);
  const auto blocks = cut<Compute>(scratch, tile.form.group, tile.form.head_dim);
  for_each_step(tile, blocks.row_space,
                [&](const Step& step) { start<Stored>(tile, blocks, step); });
  const int64_t seen_end = end_key(tile.form, tile.end - 1);
  for (int64_t begin = first_key(tile.form, tile.begin) / kKeyBlock * kKeyBlock; begin < seen_end;
       begin += kKeyBlock) {
    const Keys block = {begin, smaller_of(kKeyBlock, seen_end - begin)};
    pack_keys<Key>(tile, blocks, block);
    for_each_step(tile, blocks.row_space,
                  [&](const Step& step) { attend<Key>(tile.form, blocks, step, block); });
  }
  for_each_step(tile, blocks.row_space,
                [&](const Step& step) { finish<Stored>(tile, blocks, step); });
}

template <typename Stored>
void attend_plain(const AttentionTile& tile) {
  attend_tile<Stored, Stored>(tile);
}

}  // namespace

extern const AttentionTileKernels kAttentionTileKernels;
const AttentionTileKernels kAttentionTileKernels = {
    .queries = queries_of_tile,
    .scratch_bytes = SNUG_BY_ELEMENT(scratch_bytes),
    .attend = {SNUG_BY_ELEMENT(attend_plain), SNUG_BY_ELEMENT(attend_tile, int8_t)},
};

}  // namespace snug::backends::cpu::SNUG_ISA
