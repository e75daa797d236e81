// The backward pass of a segment: for a row (one query of one head) i and a key j,
//
//   p_ij = exp(scale q_i k_j - lse_i)           dv_j = sum_i p_ij do_i
//   ds_ij = p_ij (do_i v_j - do_i o_i)          dq_i = scale sum_j ds_ij k_j
//                                               dk_j = scale sum_i ds_ij q_i
//
//   for each tile of up to kRows rows: pack q and do, then
//     for each block of kKeyBlock keys that any of them sees: pack k and v, then
//       for each kRowStep rows: p and ds with keys as their rows; dv and dk of the block, and dq of
//       the rows (transposed) grow by their products.
//
// dk and dv are summed in scratch over the whole segment, so one caller does a segment's key head
// alone and every sum has one order. Keys are the rows of p and ds because both are then what dv
// and dk need on the left, and dq transposed needs on the right, without a transpose a block.
#include "backends/cpu/kernels/attention_blocks.h"
#include "backends/cpu/kernels/exp2.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kRowStep = 64;
constexpr int64_t kKeyBlock = 64;
// Rows of a tile: k and v are packed once for it. With a head of 128 its blocks are 1.3 MiB in bf16
// and stay in a second-level cache.
constexpr int64_t kRows = 768;

template <typename Compute>
struct Blocks {
  int64_t width;      // head_dim filled up
  int64_t row_space;  // rows of a head in the tile, filled up
  // Of a tile, one after another for every kRowStep rows: (width, kRowStep) units along width, and
  // (kRowStep, width) units along rows.
  Compute *q_by_width, *q_by_row, *d_o_by_width, *d_o_by_row;
  float* dq;          // (width, kRowStep) for every kRowStep rows
  float *lse, *mean;  // of every row; lse in powers of two, mean = do_i o_i
  // Of a block of keys.
  Compute *k, *v;     // (kKeyBlock, width)
  Compute* k_turned;  // (width, kKeyBlock)
  // Of a block of keys against kRowStep rows.
  float *scores, *d_weights;    // (kKeyBlock, kRowStep)
  Compute *weights, *d_scores;  // (kKeyBlock, kRowStep)
  Compute* d_scores_by_key;     // (kKeyBlock, kRowStep) units along keys
  Compute *rows, *pairs;        // (64, width): on the way to the others
  float* dq_rows;               // (kRowStep, width)
  float *dk, *dv;               // (keys, width)
};

int64_t queries_of_tile(int64_t group) {
  return larger_of(kRowStep, kRows / group / kRowStep * kRowStep);
}

template <typename Compute>
Blocks<Compute> cut(Scratch& scratch, int64_t group, int64_t head_dim, int64_t keys) {
  Blocks<Compute> blocks;
  blocks.width = round_up(head_dim, kBlockStep);
  blocks.row_space = queries_of_tile(group);
  const int64_t rows = group * blocks.row_space;
  blocks.q_by_width = scratch.take<Compute>(rows * blocks.width);
  blocks.q_by_row = scratch.take<Compute>(rows * blocks.width);
  blocks.d_o_by_width = scratch.take<Compute>(rows * blocks.width);
  blocks.d_o_by_row = scratch.take<Compute>(rows * blocks.width);
  blocks.dq = scratch.take<float>(rows * blocks.width);
  blocks.lse = scratch.take<float>(rows);
  blocks.mean = scratch.take<float>(rows);
  blocks.k = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.v = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.k_turned = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.scores = scratch.take<float>(kKeyBlock * kRowStep);
  blocks.d_weights = scratch.take<float>(kKeyBlock * kRowStep);
  blocks.weights = scratch.take<Compute>(kKeyBlock * kRowStep);
  blocks.d_scores = scratch.take<Compute>(kKeyBlock * kRowStep);
  blocks.d_scores_by_key = scratch.take<Compute>(kKeyBlock * kRowStep);
  blocks.rows = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.pairs = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.dq_rows = scratch.take<float>(kRowStep * blocks.width);
  blocks.dk = scratch.take<float>(round_up(keys, kKeyBlock) * blocks.width);
  blocks.dv = scratch.take<float>(round_up(keys, kKeyBlock) * blocks.width);
  return blocks;
}

// Segments of few queries or keys are computed in fp32 whatever their type: where a handful of
// weights make up all of a gradient, rounding them to bf16 on the way would show in the result.
bool is_short(const AttentionForm& form) {
  constexpr int64_t kFewQueries = 16;
  constexpr int64_t kFewKeys = 64;
  return form.queries <= kFewQueries || form.keys <= kFewKeys;
}

template <typename Compute>
int64_t bytes_of_blocks(int64_t group, int64_t head_dim, int64_t keys) {
  Scratch scratch(nullptr);
  cut<Compute>(scratch, group, head_dim, keys);
  return scratch.bytes();
}

template <typename Stored>
int64_t scratch_bytes(int64_t group, int64_t head_dim, int64_t keys) {
  using Compute = typename ComputeType<Stored>::Type;
  return larger_of(bytes_of_blocks<Compute>(group, head_dim, keys),
                   bytes_of_blocks<float>(group, head_dim, keys));
}

// Rows of a tensor of queries, packed both ways.
template <typename Compute>
struct Packed {
  Compute *by_width, *by_row;
};

template <typename Stored, typename Compute>
void pack_rows(RowBlock<const Stored> from, int64_t count, int64_t head_dim,
               const Blocks<Compute>& blocks, const Packed<Compute>& to) {
  copy_rows(from, count, head_dim, RowBlock<Compute>{blocks.rows, blocks.width}, kRowStep);
  const int64_t units = blocks.width / kUnit<Compute>;
  transpose_units(RowBlock<const Compute>{blocks.rows, units}, kRowStep, units,
                  RowBlock<Compute>{to.by_width, kRowStep});
  pair_rows(RowBlock<const Compute>{blocks.rows, blocks.width}, kRowStep, blocks.width,
            RowBlock<Compute>{to.by_row, blocks.width});
}

template <typename Stored>
float dot(const Stored* a, const Stored* b, int64_t n) {
  Float16Lanes sum = {};
  for_each_lanes(n, [&](int64_t i, auto part) { sum += load(a + i, part) * load(b + i, part); });
  return reduce_add(sum);
}

// Rows [row, row + kRowStep) of the tile: `count` queries of one head from `query` on.
struct Step {
  int64_t row, head, query, count;
};

template <typename Stored, typename Compute>
void start(const AttentionSegmentGrad& segment, const Blocks<Compute>& blocks, const Step& step) {
  const int64_t d = segment.form.head_dim;
  const int64_t offset = step.row * blocks.width;
  const auto d_o = head_block<Stored>(segment.d_o, step.query, step.head, d);
  const auto o = head_block<Stored>(segment.o, step.query, step.head, d);
  pack_rows(head_block<Stored>(segment.q, step.query, step.head, d), step.count, d, blocks,
            Packed<Compute>{blocks.q_by_width + offset, blocks.q_by_row + offset});
  pack_rows(d_o, step.count, d, blocks,
            Packed<Compute>{blocks.d_o_by_width + offset, blocks.d_o_by_row + offset});
  const float* lse = segment.lse + step.head * segment.lse_stride + step.query;
  // Rows that are only there to fill up get no weight.
  constexpr float kNoWeight = 1e30F;
  for (int64_t i = 0; i < kRowStep; ++i) {
    const bool there = i < step.count;
    blocks.lse[step.row + i] = there ? lse[i] * kLog2OfE : kNoWeight;
    blocks.mean[step.row + i] =
        there ? dot(d_o.data + i * d_o.stride, o.data + i * o.stride, d) : 0.0F;
  }
  store_zeros(blocks.dq + offset, kRowStep * blocks.width);
}

template <typename Stored, typename Compute>
void pack_keys(const AttentionSegmentGrad& segment, const Blocks<Compute>& blocks, int64_t begin) {
  const int64_t d = segment.form.head_dim;
  const int64_t count = smaller_of(kKeyBlock, segment.form.keys - begin);
  copy_rows(head_block<Stored>(segment.k, begin, 0, d), count, d,
            RowBlock<Compute>{blocks.k, blocks.width}, kKeyBlock);
  copy_rows(head_block<Stored>(segment.v, begin, 0, d), count, d,
            RowBlock<Compute>{blocks.v, blocks.width}, kKeyBlock);
  pair_rows(RowBlock<const Compute>{blocks.k, blocks.width}, kKeyBlock, blocks.width,
            RowBlock<Compute>{blocks.pairs, blocks.width});
  constexpr int64_t kUnits = kKeyBlock / kUnit<Compute>;
  transpose_units(RowBlock<const Compute>{blocks.pairs, blocks.width}, kUnits, blocks.width,
                  RowBlock<Compute>{blocks.k_turned, kUnits});
}

// Thirty-two columns of a row as they come.
SNUG_INLINE void store_both(float* out, const Float16Lanes (&x)[2]) {
  store(out, x[0]);
  store(out + kLanes, x[1]);
}
SNUG_INLINE void store_both(uint16_t* out, const Float16Lanes (&x)[2]) {
#if defined(__AVX512BF16__)
  const auto both =
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(x[1]), reinterpret_cast<__m512>(x[0]));
  __builtin_memcpy(out, &both, sizeof both);
#else
  store(out, x[0]);
  store(out + kLanes, x[1]);
#endif
}

// Weights and derivatives of scores for keys from `key` on; all are seen where `seen` is null.
template <typename Compute>
SNUG_INLINE void weigh(const Blocks<Compute>& blocks, const Step& step, float factor, int64_t key,
                       const Seen<kRowStep>* seen) {
  for (int64_t i = 0; i < kRowStep; i += 2 * kLanes) {
    const Float16Lanes lse[2] = {load(blocks.lse + step.row + i),
                                 load(blocks.lse + step.row + i + kLanes)};
    const Float16Lanes mean[2] = {load(blocks.mean + step.row + i),
                                  load(blocks.mean + step.row + i + kLanes)};
    for (int64_t j = 0; j < kKeyBlock; j += 2) {
      Float16Lanes d_scores[2][2];
#pragma GCC unroll 2
      for (int64_t odd = 0; odd < 2; ++odd) {
        const int64_t at = (j + odd) * kRowStep + i;
        Float16Lanes weights[2];
#pragma GCC unroll 2
        for (int64_t half = 0; half < 2; ++half) {
          const int64_t lane = half * kLanes;
          weights[half] =
              exp2_of_weight<Compute>(load(blocks.scores + at + lane) * factor - lse[half]);
          if (seen != nullptr)
            weights[half] =
                select(sees(*seen, i + lane, key + j + odd), weights[half], Float16Lanes{});
          d_scores[odd][half] = weights[half] * (load(blocks.d_weights + at + lane) - mean[half]);
        }
        store_both(blocks.weights + at, weights);
        store_both(blocks.d_scores + at, d_scores[odd]);
      }
      if constexpr (sizeof(Compute) == 2)
        for (int64_t half = 0; half < 2; ++half)
          store_pairs(blocks.d_scores_by_key + j * kRowStep + (i + half * kLanes) * kUnit<Compute>,
                      kRowStep, d_scores[0][half], d_scores[1][half]);
    }
  }
}

// c (m, n) [+]= a b of blocks whose strides are their widths.
template <typename Compute>
void multiply(const Compute* a, const Compute* b, float* c, const int64_t (&m_n_k)[3],
              bool accumulate) {
  multiply_blocks(BlockProduct<Compute>{.a = a,
                                        .a_stride = m_n_k[2],
                                        .b = b,
                                        .b_stride = m_n_k[1],
                                        .c = c,
                                        .c_stride = m_n_k[1],
                                        .m = m_n_k[0],
                                        .n = m_n_k[1],
                                        .k = m_n_k[2],
                                        .accumulate = accumulate});
}

// A step's rows against the keys from `key` on.
template <typename Compute>
void add_block(const AttentionForm& form, const Blocks<Compute>& blocks, const Step& step,
               int64_t key) {
  const int64_t last = step.query + step.count - 1;
  if (key >= end_key(form, last) || key + kKeyBlock <= first_key(form, step.query)) return;
  const int64_t width = blocks.width;
  const int64_t offset = step.row * width;
  multiply(blocks.k, blocks.q_by_width + offset, blocks.scores, {kKeyBlock, kRowStep, width},
           false);
  multiply(blocks.v, blocks.d_o_by_width + offset, blocks.d_weights, {kKeyBlock, kRowStep, width},
           false);
  const float factor = form.scale * kLog2OfE;
  if (key >= first_key(form, last) && key + kKeyBlock <= end_key(form, step.query)) {
    weigh(blocks, step, factor, key, nullptr);
  } else {
    const auto seen = seen_by<kRowStep>(form, step.query);
    weigh(blocks, step, factor, key, &seen);
  }
  multiply(blocks.weights, blocks.d_o_by_row + offset, blocks.dv + key * width,
           {kKeyBlock, width, kRowStep}, true);
  multiply(blocks.d_scores, blocks.q_by_row + offset, blocks.dk + key * width,
           {kKeyBlock, width, kRowStep}, true);
  const Compute* by_key = kUnit<Compute> == 1 ? blocks.d_scores : blocks.d_scores_by_key;
  multiply(blocks.k_turned, by_key, blocks.dq + offset, {width, kRowStep, kKeyBlock}, true);
}

// Rows of fp32 sums times scale into a tensor.
template <typename Stored>
void store_rows(RowBlock<const float> sums, int64_t rows, float scale, int64_t head_dim,
                RowBlock<Stored> to) {
  for (int64_t row = 0; row < rows; ++row)
    for_each_lanes(head_dim, [&](int64_t i, auto part) {
      const Float16Lanes sum = load(sums.data + row * sums.stride + i, part);
      store(to.data + row * to.stride + i, sum * scale, part);
    });
}

template <typename Stored, typename Compute>
void finish(const AttentionSegmentGrad& segment, const Blocks<Compute>& blocks, const Step& step) {
  const int64_t d = segment.form.head_dim;
  transpose_units(RowBlock<const float>{blocks.dq + step.row * blocks.width, kRowStep},
                  blocks.width, kRowStep, RowBlock<float>{blocks.dq_rows, blocks.width});
  Stored* dq = static_cast<Stored*>(segment.dq) + step.query * segment.dq_stride + step.head * d;
  store_rows(RowBlock<const float>{blocks.dq_rows, blocks.width}, step.count, segment.form.scale, d,
             RowBlock<Stored>{dq, segment.dq_stride});
}

// Calls f(step) for the rows of the tile whose queries are [begin, end).
template <typename F>
SNUG_INLINE void for_each_step(const AttentionForm& form, int64_t row_space, int64_t begin,
                               int64_t end, F f) {
  for (int64_t head = 0; head < form.group; ++head)
    for (int64_t query = begin; query < end; query += kRowStep)
      f(Step{head * row_space + query - begin, head, query, smaller_of(kRowStep, end - query)});
}

template <typename Stored, typename Compute>
void add_tile(const AttentionSegmentGrad& segment, const Blocks<Compute>& blocks, int64_t begin,
              int64_t end) {
  const AttentionForm& form = segment.form;
  for_each_step(form, blocks.row_space, begin, end,
                [&](const Step& step) { start<Stored>(segment, blocks, step); });
  const int64_t seen_end = end_key(form, end - 1);
  for (int64_t key = first_key(form, begin) / kKeyBlock * kKeyBlock; key < seen_end;
       key += kKeyBlock) {
    pack_keys<Stored>(segment, blocks, key);
    for_each_step(form, blocks.row_space, begin, end,
                  [&](const Step& step) { add_block(form, blocks, step, key); });
  }
  for_each_step(form, blocks.row_space, begin, end,
                [&](const Step& step) { finish<Stored>(segment, blocks, step); });
}

template <typename Stored, typename Compute>
void differentiate_in(const AttentionSegmentGrad& segment) {
  const AttentionForm& form = segment.form;
  Scratch scratch(segment.scratch);
  const auto blocks = cut<Compute>(scratch, form.group, form.head_dim, form.keys);
  const int64_t sums = round_up(form.keys, kKeyBlock) * blocks.width;
  store_zeros(blocks.dk, sums);
  store_zeros(blocks.dv, sums);
  for (int64_t begin = 0; begin < form.queries; begin += blocks.row_space)
    add_tile<Stored>(segment, blocks, begin, smaller_of(form.queries, begin + blocks.row_space));
  store_rows(RowBlock<const float>{blocks.dk, blocks.width}, form.keys, form.scale, form.head_dim,
             RowBlock<Stored>{static_cast<Stored*>(segment.dk), segment.dk_stride});
  store_rows(RowBlock<const float>{blocks.dv, blocks.width}, form.keys, 1.0F, form.head_dim,
             RowBlock<Stored>{static_cast<Stored*>(segment.dv), segment.dv_stride});
}

template <typename Stored>
void differentiate(const AttentionSegmentGrad& segment) {
  if (is_short(segment.form)) return differentiate_in<Stored, float>(segment);
  const TilesInUse tiles;
  differentiate_in<Stored, typename ComputeType<Stored>::Type>(segment);
}

}  // namespace

extern const AttentionGradKernels kAttentionGradKernels;
const AttentionGradKernels kAttentionGradKernels = {
    .scratch_bytes = {scratch_bytes<float>, scratch_bytes<uint16_t>},
    .differentiate = {differentiate<float>, differentiate<uint16_t>},
};

}  // namespace snug::backends::cpu::SNUG_ISA
