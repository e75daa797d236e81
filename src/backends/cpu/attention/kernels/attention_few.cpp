// The forward pass for a few queries, as in generation. Keys and values are read once, in place,
// since packing them would cost more than it saves.
#include "backends/cpu/attention/kernels/attention_blocks.h"
#include "backends/cpu/attention/kernels/score_adjustment.h"
#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/exp2.h"
#include "backends/cpu/kernels/row_end.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kKeyBlock = 64;
constexpr float kLowest = -__FLT_MAX__;

// A block of keys in runs of rows that follow one another: key first + j is key j of the block.
// The scales are of keys and values in 8 bits.
struct KeyBlock {
  int64_t first, count;
  int64_t runs;
  KeyRun at[kKeyBlock];
  float key_scales[kKeyBlock], value_scales[kKeyBlock];
};

template <typename Key>
SNUG_INLINE void find_block(const AttentionTile& tile, int64_t first, int64_t count,
                            KeyBlock& block) {
  block.first = first;
  block.count = count;
  block.runs = 0;
  for_each_run(tile.pages, first, count, [&](const KeyRun& run) { block.at[block.runs++] = run; });
  if constexpr (kHasScales<Key>) {
    copy_scales(tile.pages, tile.k, first, count, block.key_scales);
    copy_scales(tile.pages, tile.v, first, count, block.value_scales);
  }
}

// One query of one head: an online softmax over blocks of keys, relative to the largest score so
// far.
struct Row {
  float sums[kLargestHeadDim];
  float scores[kKeyBlock];
  float largest;
  float total;
  float correction;  // the factor for the sums over earlier blocks
};

// Calls f(j, x), for each key j of the block, with its row of a head's keys or values.
template <typename X, typename F>
SNUG_INLINE void for_each_key(const KeyBlock& block, const HeadRows& rows, F f) {
  for (int64_t r = 0; r < block.runs; ++r) {
    const KeyRun run = block.at[r];
    const X* first = static_cast<const X*>(rows.data) + run.row * rows.stride;
    const int64_t begin = run.key - block.first;
    for (int64_t j = 0; j < run.count; ++j) f(begin + j, first + j * rows.stride);
  }
}

// sums[i] = sums[i] * row.correction + sum_j scores[j] v[j][i] for four vectors of i, from `from`
// on.
template <typename X>
SNUG_INLINE void add_values(Row& row, const HeadRows& v, const KeyBlock& block, int64_t from) {
  Float16Lanes sum[4];
  float* sums = row.sums + from;
  for (int64_t k = 0; k < 4; ++k) sum[k] = load(sums + k * kLanes) * row.correction;
  for_each_key<X>(block, v, [&](int64_t j, const X* values) {
#pragma GCC unroll 4
    for (int64_t k = 0; k < 4; ++k) sum[k] += load(values + from + k * kLanes) * row.scores[j];
  });
  for (int64_t k = 0; k < 4; ++k) store(sums + k * kLanes, sum[k]);
}

// Turns the products of one query with a block of keys into scores.
void adjust_block(const AttentionForm& form, int64_t head, int64_t query, int64_t begin,
                  int64_t count, float* scores) {
  const ScoreAdjustment adjustment(form, head);
  for_each_lanes(count, [&](int64_t j, auto part) {
    const Float16Lanes biases = adjustment.of_keys(begin + j, query);
    store(scores + j, adjustment.at(load(scores + j, part), biases).score, part);
  });
}

// Turns a block's scores into weights, and adds the weighted rows of v to the sums.
template <typename Key>
void add_block(const AttentionTile& tile, const KeyBlock& block, Row& row) {
  const int64_t d = tile.form.head_dim;
  const int64_t count = block.count;
  float largest = row.largest;
  for (int64_t j = 0; j < count; ++j) largest = largest >= row.scores[j] ? largest : row.scores[j];
  row.correction = exp2(splat(row.largest - largest))[0];
  Float16Lanes total = {};
  for_each_lanes(count, [&](int64_t j, auto part) {
    store(row.scores + j, exp2(load(row.scores + j, part) - largest), part);
    total += load(row.scores + j, part);
  });
  row.total = row.total * row.correction + reduce_add(total);
  row.largest = largest;
  if constexpr (kHasScales<Key>)
    for_each_lanes(count, [&](int64_t j, auto part) {
      store(row.scores + j, load(row.scores + j, part) * load(block.value_scales + j, part), part);
    });
  constexpr int64_t kWide = 4 * kLanes;
  int64_t i = 0;
  for (; i + kWide <= d; i += kWide) add_values<Key>(row, tile.v, block, i);
  for_each_lanes(d - i, [&](int64_t rest, auto part) {
    Float16Lanes sum = load(row.sums + i + rest, part) * row.correction;
    for_each_key<Key>(block, tile.v, [&](int64_t j, const Key* values) {
      sum += load(values + i + rest, part) * row.scores[j];
    });
    store(row.sums + i + rest, sum, part);
  });
}

// The rows of a head are too far apart for the hardware prefetcher. Keys are prefetched this many
// rows ahead: 100 ns of work, about the latency of memory.
constexpr int64_t kAhead = 16;

template <typename X>
SNUG_INLINE void prefetch(const X* x, int64_t n) {
  constexpr int64_t kLine = int64_t{64} / int64_t{sizeof(X)};
  for (int64_t i = 0; i < n; i += kLine) __builtin_prefetch(x + i);
}

// Heads that process a block of keys together, so that it is read from memory once.
constexpr int64_t kHeads = 8;

// The row of a key, or the next one where no query sees it.
SNUG_INLINE int64_t row_of(const KeyPages& pages, int64_t key, int64_t end, int64_t next) {
  if (key < end) for_each_run(pages, key, 1, [&](const KeyRun& run) { next = run.row; });
  return next;
}

// A query of several heads.
template <typename X>
struct QueryHeads {
  const X* q;  // of the first head
  int64_t heads;
  int64_t end;   // of the keys that it sees
  float factor;  // for products
};

template <typename Key, typename X>
SNUG_INLINE void score_block(const AttentionTile& tile, const QueryHeads<X>& query,
                             const KeyBlock& block, Row* rows) {
  const int64_t d = tile.form.head_dim;
  const Key* k = static_cast<const Key*>(tile.k.data);
  const Key* v = static_cast<const Key*>(tile.v.data);
  for (int64_t r = 0; r < block.runs; ++r) {
    const KeyRun run = block.at[r];
    // Of the keys after the run, which are to arrive in time as well.
    const int64_t next = row_of(tile.pages, run.key + run.count, query.end, run.row + run.count);
    for (int64_t j = 0; j < run.count; ++j) {
      const int64_t ahead = j + kAhead < run.count ? run.row : next - run.count;
      const int64_t row = run.row + j;
      prefetch(k + (ahead + j + kAhead) * tile.k.stride, d);
      prefetch(v + row * tile.v.stride, d);
      const int64_t at = run.key - block.first + j;
      const float factor = kHasScales<Key> ? query.factor * block.key_scales[at] : query.factor;
      for (int64_t head = 0; head < query.heads; ++head)
        rows[head].scores[at] = factor * dot(query.q + head * d, k + row * tile.k.stride, d);
    }
  }
}

template <typename Key, typename X>
void attend_query(const AttentionTile& tile, int64_t first_head, int64_t heads, int64_t i) {
  const int64_t d = tile.form.head_dim;
  const bool adjusts = are_adjusted(tile.form);
  const int64_t start = first_key(tile.form, i);
  const int64_t end = end_key(tile.form, i);
  const QueryHeads<X> query{head_block<X>(tile.q, i, first_head, d).data, heads, end,
                            adjusts ? 1.0F : tile.form.scale * kLog2OfE};
  Row rows[kHeads];
  for (int64_t head = 0; head < heads; ++head) {
    store_zeros(rows[head].sums, d);
    rows[head].largest = kLowest;
    rows[head].total = 0.0F;
  }
  KeyBlock block;
  for (int64_t begin = start; begin < end; begin += kKeyBlock) {
    find_block<Key>(tile, begin, smaller_of(kKeyBlock, end - begin), block);
    score_block<Key>(tile, query, block, rows);
    for (int64_t head = 0; head < heads; ++head) {
      if (adjusts)
        adjust_block(tile.form, first_head + head, i, begin, block.count, rows[head].scores);
      add_block<Key>(tile, block, rows[head]);
    }
  }
  const bool saw = start < end;
  for (int64_t head = 0; head < heads; ++head) {
    const Row& row = rows[head];
    const RowEnd row_end =
        saw ? end_of_row<X>(tile, first_head + head, row.largest, row.total) : RowEnd{0.0F, 0.0F};
    X* o = static_cast<X*>(tile.o) + i * tile.o_stride + (first_head + head) * d;
    for_each_lanes(d, [&](int64_t j, auto part) {
      store(o + j, load(row.sums + j, part) * row_end.share, part);
    });
    tile.lse[(first_head + head) * tile.lse_stride + i] = row_end.lse;
  }
}

template <typename Key, typename X>
void attend(const AttentionTile& tile) {
  for (int64_t i = tile.begin; i < tile.end; ++i)
    for (int64_t head = 0; head < tile.form.group; head += kHeads)
      attend_query<Key, X>(tile, head, smaller_of(kHeads, tile.form.group - head), i);
}

template <typename X>
void attend_plain(const AttentionTile& tile) {
  attend<X, X>(tile);
}

}  // namespace

extern const AttentionFewKernels kAttentionFewKernels;
const AttentionFewKernels kAttentionFewKernels = {
    .attend = {SNUG_BY_ELEMENT(attend_plain), SNUG_BY_ELEMENT(attend, int8_t)}};

}  // namespace snug::backends::cpu::SNUG_ISA
