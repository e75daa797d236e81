// The backward pass of a segment: for a row (one query of one head) i and a key j,
//
//   p_ij = exp(scale q_i k_j - lse_i)           dv_j = sum_i p_ij do_i
//   ds_ij = p_ij (do_i v_j - do_i o_i)          dq_i = scale sum_j ds_ij k_j
//                                               dk_j = scale sum_i ds_ij q_i
//
// (with a softcap, ds_ij is also multiplied by the cap's slope: score_adjustment.h)
//
//   for each tile of up to kRows rows: pack q and do, then
//     for each block of kKeyBlock keys that any of them sees: pack k and v, then
//       for each panel of up to kPanelRows rows:
//         for each kRowStep rows: p and ds with keys as their rows; their product is added to dq
//         of the rows (transposed);
//         the products with the whole panel are added to dv and dk of the block.
//
// A step processes its keys one square at a time, so that what one product leaves for the next
// stays in the first-level cache; the sums of dk and dv stay in registers over a panel, since AMX
// tiles stall on data from the second-level cache.
//
// dk and dv are summed in scratch over the whole segment, so one caller does the whole segment of a
// key head and every sum has a fixed order. Keys are the rows of p and ds because dv and dk then
// take both as left factors, and the transpose of dq takes ds as right factor, without transposing
// each block.
#include "backends/cpu/attention/kernels/attention_weights.h"
#include "backends/cpu/kernels/element_table.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kRowStep = kSquare;
constexpr int64_t kKeyBlock = 2 * kSquare;
// With three heads in a group, all rows of a head in a tile, so that dk and dv are read and written
// once.
constexpr int64_t kPanelRows = 256;
// Rows in a tile: k and v are packed once per tile. For head_dim 128 its blocks take 1.3 MiB in
// bf16 and stay in the second-level cache.
constexpr int64_t kRows = 768;

template <typename Compute>
struct Blocks {
  int64_t width;      // head_dim, padded
  int64_t row_space;  // rows of a head in the tile, padded
  // These belong to a tile; each has one part for every kRowStep rows: (width, kRowStep) units
  // along width, or (kRowStep, width) units along rows.
  Compute *q_by_width, *q_by_row, *d_o_by_width, *d_o_by_row;
  float* dq;                // (width, kRowStep) for every kRowStep rows
  float *lse, *minus_mean;  // one per row; lse is in powers of two, minus_mean is -do_i o_i
  // These belong to a block of keys.
  Compute *k, *v;     // (kKeyBlock, width)
  Compute* k_turned;  // transposed: (width, kKeyBlock)
  // These belong to a block of keys with a step or a panel of rows; the units are those of two
  // steps.
  float *scores, *d_weights;    // (kSquare, kSquare)
  Compute *weights, *d_scores;  // (kKeyBlock, kPanelRows)
  Compute* d_score_units;       // 2 (kKeyBlock, kRowStep) units along keys
  Compute *rows, *pairs;        // (kKeyBlock, width): intermediate results of packing
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
  blocks.minus_mean = scratch.take<float>(rows);
  blocks.k = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.v = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.k_turned = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.scores = scratch.take<float>(kSquare * kSquare);
  blocks.d_weights = scratch.take<float>(kSquare * kSquare);
  blocks.weights = scratch.take<Compute>(kKeyBlock * kPanelRows);
  blocks.d_scores = scratch.take<Compute>(kKeyBlock * kPanelRows);
  blocks.d_score_units = scratch.take<Compute>(2 * kKeyBlock * kRowStep);
  blocks.rows = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.pairs = scratch.take<Compute>(kKeyBlock * blocks.width);
  blocks.dq_rows = scratch.take<float>(kRowStep * blocks.width);
  blocks.dk = scratch.take<float>(round_up(keys, kKeyBlock) * blocks.width);
  blocks.dv = scratch.take<float>(round_up(keys, kKeyBlock) * blocks.width);
  return blocks;
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

// Rows of a tensor of queries, packed along width and along rows.
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

// Rows [row, row + kRowStep) of the tile: `count` queries of head `head`, starting at `query`.
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
  // Padding rows get weight 0.
  constexpr float kNoWeight = 1e30F;
  for (int64_t i = 0; i < kRowStep; ++i) {
    const bool there = i < step.count;
    blocks.lse[step.row + i] = there ? lse[i] * kLog2OfE : kNoWeight;
    blocks.minus_mean[step.row + i] =
        there ? -dot(d_o.data + i * d_o.stride, o.data + i * o.stride, d) : 0.0F;
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

bool sees_any(const AttentionForm& form, const Step& step, int64_t key) {
  const int64_t last = step.query + step.count - 1;
  return key < end_key(form, last) && key + kKeyBlock > first_key(form, step.query);
}

// The steps of a panel that see any key of a block: consecutive steps of one head.
struct Panel {
  Step steps[kPanelRows / kRowStep];
  Seen<kRowStep> seen[kPanelRows / kRowStep];
  bool all_seen[kPanelRows / kRowStep];
  int64_t count = 0;
};

Panel panel_of(const AttentionForm& form, const Step& rows, int64_t key) {
  Panel panel;
  for (int64_t i = 0; i < rows.count; i += kRowStep) {
    const Step step = {rows.row + i, rows.head, rows.query + i,
                       smaller_of(kRowStep, rows.count - i)};
    if (!sees_any(form, step, key)) continue;
    panel.all_seen[panel.count] = key >= first_key(form, step.query + step.count - 1) &&
                                  key + kKeyBlock <= end_key(form, step.query);
    if (!panel.all_seen[panel.count]) panel.seen[panel.count] = seen_by<kRowStep>(form, step.query);
    panel.steps[panel.count++] = step;
  }
  return panel;
}

// Processes the block of keys that starts at `key`.
template <typename Compute>
struct BlockPass {
  const AttentionForm& form;
  const Blocks<Compute>& blocks;
  const Panel& panel;
  int64_t key;
  DistanceTable<float> d_biases;  // the table of the panel's head

  // The scores of a step for half of the keys, and the gradients of their weights.
  void score(int64_t index, int64_t half) const {
    const int64_t width = blocks.width;
    const int64_t row = panel.steps[index].row;
    SquareProduct<Compute> product{.a = blocks.k + half * kSquare * width,
                                   .a_stride = width,
                                   .b = blocks.q_by_width + row * width,
                                   .b_stride = kRowStep,
                                   .start = nullptr,
                                   .start_stride = 0,
                                   .c = blocks.scores,
                                   .c_stride = kSquare,
                                   .k = width};
    multiply_square(product);
    product.a = blocks.v + half * kSquare * width;
    product.b = blocks.d_o_by_width + row * width;
    product.start = blocks.minus_mean + row;
    product.c = blocks.d_weights;
    multiply_square(product);
  }

  void weigh_half(int64_t index, int64_t half) const {
    const int64_t first = half * kSquare;
    const int64_t to = first * kPanelRows + index * kRowStep;
    const ScoreAdjustment adjustment(form, panel.steps[index].head);
    weigh(Weighing<Compute>{
        .scores = blocks.scores,
        .d_weights = blocks.d_weights,
        .lse = blocks.lse + panel.steps[index].row,
        .factor = form.scale * kLog2OfE,
        .weights = blocks.weights + to,
        .d_scores = blocks.d_scores + to,
        .stride = kPanelRows,
        .units = blocks.d_score_units + (index % 2 * kKeyBlock + first) * kRowStep,
        .key = key + first,
        .seen = panel.all_seen[index] ? nullptr : &panel.seen[index],
        .adjustment = are_adjusted(form) ? &adjustment : nullptr,
        .query = panel.steps[index].query,
        .d_biases = d_biases});
  }

  // Adds to dq of a step: every other square along the width, starting with square `half`.
  void add_dq(int64_t index, int64_t half) const {
    constexpr bool kUnits = sizeof(Compute) == 2;
    float* dq = blocks.dq + panel.steps[index].row * blocks.width;
    for (int64_t i = half * kSquare; i < blocks.width; i += 2 * kSquare)
      multiply_square(SquareProduct<Compute>{
          .a = blocks.k_turned + i * kKeyBlock,
          .a_stride = kKeyBlock,
          .b = kUnits ? blocks.d_score_units + index % 2 * kKeyBlock * kRowStep
                      : blocks.d_scores + index * kRowStep,
          .b_stride = kUnits ? kRowStep : kPanelRows,
          .start = dq + i * kRowStep,
          .start_stride = kRowStep,
          .c = dq + i * kRowStep,
          .c_stride = kRowStep,
          .k = kKeyBlock});
  }

  // dq of a step is computed between the scores and the weights of the next step: after a tile
  // stores data it takes a while until vectors can load it, and the other way round.
  void add_steps() const {
    for (int64_t index = 0; index <= panel.count; ++index)
      for (int64_t half = 0; half < 2; ++half) {
        if (index < panel.count) score(index, half);
        if (index > 0) add_dq(index - 1, half);
        if (index < panel.count) weigh_half(index, half);
      }
  }

  // Adds the panel's contribution to dk and dv of the block.
  void add_panel() const {
    const int64_t width = blocks.width;
    const int64_t row = panel.steps[0].row;
    BlockProduct<Compute> product{.a = blocks.weights,
                                  .a_stride = kPanelRows,
                                  .b = blocks.d_o_by_row + row * width,
                                  .b_stride = width,
                                  .c = blocks.dv + key * width,
                                  .c_stride = width,
                                  .m = kKeyBlock,
                                  .n = width,
                                  .k = panel.count * kRowStep,
                                  .accumulate = true};
    multiply_blocks(product);
    product.a = blocks.d_scores;
    product.b = blocks.q_by_row + row * width;
    product.c = blocks.dk + key * width;
    multiply_blocks(product);
  }
};

// Processes rows of one head with the block of keys that starts at `key`.
template <typename Compute>
void add_block(const AttentionSegmentGrad& segment, const Blocks<Compute>& blocks, const Step& rows,
               int64_t key) {
  const Panel panel = panel_of(segment.form, rows, key);
  if (panel.count == 0) return;
  DistanceTable<float> d_biases = segment.d_biases;
  if (d_biases.zero != nullptr) d_biases.zero += rows.head * d_biases.head_step;
  const BlockPass<Compute> pass{segment.form, blocks, panel, key, d_biases};
  pass.add_steps();
  pass.add_panel();
}

// Stores rows of fp32 sums, multiplied by `scale`, in a tensor.
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
  for (int64_t place = 0; place < kRowStep; ++place) {
    const int64_t row = column_of_place<Compute>(place);
    if (row < step.count)
      store_rows(RowBlock<const float>{blocks.dq_rows + place * blocks.width, 0}, 1,
                 segment.form.scale, d, RowBlock<Stored>{dq + row * segment.dq_stride, 0});
  }
}

// Calls f(step) for the rows of the tile whose queries are in [begin, end).
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
    for (int64_t head = 0; head < form.group; ++head)
      for (int64_t query = begin; query < end; query += kPanelRows)
        add_block(segment, blocks,
                  Step{head * blocks.row_space + query - begin, head, query,
                       smaller_of(kPanelRows, end - query)},
                  key);
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
  if (segment.in_f32) return differentiate_in<Stored, float>(segment);
  const TilesInUse tiles;
  differentiate_in<Stored, typename ComputeType<Stored>::Type>(segment);
}

}  // namespace

extern const AttentionGradKernels kAttentionGradKernels;
const AttentionGradKernels kAttentionGradKernels = {
    .scratch_bytes = SNUG_BY_ELEMENT(scratch_bytes),
    .differentiate = SNUG_BY_ELEMENT(differentiate),
};

}  // namespace snug::backends::cpu::SNUG_ISA
