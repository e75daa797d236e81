#include "backends/cpu/loss/online_loss.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/attention/softmax_rows.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product/wide_product.h"
#include "backends/cpu/rows.h"
#include "base/error.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cpu {
namespace {

using base::DType;

// More rows take more memory; fewer rows mean reading and packing the weight more often, which at
// this number takes a tenth of the time of the products.
constexpr int64_t kChunkRows = 1024;
// The most entries in a block: the sums are read and written once per block, and a row's logits
// take four bytes per entry.
constexpr int64_t kMaxEntries = 1024;
// The gap between rows of logits in elements: with strides that are powers of two, rows would
// compete for few sets of a cache.
constexpr int64_t kGap = 32;

struct RowState {
  float largest;
  float sum;
  float target_logit;
};

class OnlineRun {
 public:
  OnlineRun(const OnlineLossPlan& plan, const LossOperands<Buffer>& operands,
            const Invocation& invocation, const CpuContext& context)
      : plan_(plan),
        shape_(plan.shape()),
        invocation_(invocation),
        context_(context),
        softmax_(*context.kernels.online_softmax),
        hidden_(rows_of(operands.hidden)),
        weight_(rows_of(operands.weight)),
        targets_(integers_of(operands.targets)),
        factors_(factors_of(operands.inverse_tokens)),
        losses_(operands.losses.as<float>()),
        loss_(operands.loss),
        dweight_(operands.dweight),
        row_numbers_(invocation.workspace.as<int32_t>()) {
    if (shape_.train) dhidden_ = rows_of(*operands.dhidden);
  }

  void run() {
    if (has_mean_weight()) make_mean_weight();
    const int64_t trained = list_trained_rows(shape_, targets_, losses_, dhidden_, row_numbers_);
    invocation_.note_extent({.rows = static_cast<double>(trained)});
    for (int64_t row = 0; row < trained; row += plan_.chunk_rows) {
      const int64_t rows = std::min(plan_.chunk_rows, trained - row);
      run_chunk(row, rows);
      invocation_.note_piece(rows);
    }
    if (trained > 0) note();
    if (trained == 0 && dweight_ != nullptr && !shape_.accumulate) clear_dweight();
    sum_losses(losses_, shape_.tokens, factors_, loss_);
  }

 private:
  // Records the algorithm of the chunks; the chunks themselves are recorded as pieces.
  void note() const {
    constexpr auto kChunks = &program::LinearCrossEntropyTrain::chunks;
    constexpr auto kProducts = &program::LinearCrossEntropyTrain::products;
    invocation_.note_decision<kChunks, &program::LossChunks::algorithm>(
        program::LossAlgorithm::online);
    invocation_.note_decision<kProducts, &program::LossProducts::block_columns>(columns_);
    note_algorithms(ran_, {}, invocation_);
  }

  // Entries [first, first + count) of the vocabulary.
  struct EntryRange {
    int64_t first;
    int64_t count;
  };

  template <typename T>
  T* workspace(int64_t offset) const {
    return reinterpret_cast<T*>(invocation_.workspace.data + offset);
  }
  RowState* states() const { return workspace<RowState>(plan_.rows_offset); }
  float* sums(int64_t row) const { return workspace<float>(plan_.sums_offset) + row * plan_.depth; }
  // With smoothing: the sum of each row's logits, and in training the mean of the weight's rows.
  float* logit_sums() const { return workspace<float>(plan_.logit_sums_offset); }
  float* mean_weight() const { return workspace<float>(plan_.mean_weight_offset); }
  uint16_t* gathered(int64_t row) const {
    return workspace<uint16_t>(plan_.hidden_offset) + row * plan_.hidden_stride;
  }

  float* logits(int64_t row) const {
    return workspace<float>(plan_.logits_offset) + row * plan_.logits_stride;
  }

  void run_chunk(int64_t first_row, int64_t rows) {
    const int32_t* tokens = row_numbers_ + first_row;
    parallel_ranges(rows, 16, [&](int64_t begin, int64_t end) { gather(tokens, begin, end); });
    for_each_block([&](const EntryRange& block) {
      make_logits(rows, block);
      for_each_row(rows, [&](int64_t i) { add_row(targets_[tokens[i]] - block.first, block, i); });
      if (shape_.train) add_to_sums(rows, block);
    });
    for_each_row(rows, [&](int64_t i) { finish(tokens[i], i); });
    if (dweight_ == nullptr) return;
    const bool adds = shape_.accumulate || first_row > 0;
    for_each_block([&](const EntryRange& block) {
      make_logits(rows, block);
      for_each_row(rows, [&](int64_t i) { differentiate(tokens[i], block, i); });
      ran_.dweight_step = multiply_wide(plan_.dweight_spec(rows, block.count, adds),
                                        {.a = reinterpret_cast<const std::byte*>(logits(0)),
                                         .b = reinterpret_cast<const std::byte*>(gathered(0)),
                                         .c = rows_of(*dweight_).at(block.first)},
                                        workspace<std::byte>(plan_.scratch_offset), context_);
      ran_.dweight = program::ProductAlgorithm::wide;
    });
  }

  template <typename F>
  void for_each_block(F f) {
    int64_t number = 0;
    for (int64_t first = 0; first < shape_.vocab; first += plan_.block_entries, ++number) {
      const EntryRange block{first, std::min(plan_.block_entries, shape_.vocab - first)};
      columns_ = number > 0 ? first / number : round_up(block.count, kWidePanel);
      f(block);
    }
  }

  template <typename F>
  void for_each_row(int64_t rows, F f) const {
    parallel_ranges(rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i);
    });
  }

  void clear_dweight() const {
    const Rows dweight = rows_of(*dweight_);
    for_each_row(dweight.rows, [&](int64_t i) {
      std::memset(dweight.at(i), 0, static_cast<size_t>(dweight.columns * dweight.element_bytes()));
    });
  }

  void gather(const int32_t* tokens, int64_t begin, int64_t end) const {
    const auto padding = static_cast<size_t>(plan_.depth - shape_.width);
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(gathered(i), hidden_.at(tokens[i]), static_cast<size_t>(shape_.width) * 2);
      std::memset(gathered(i) + shape_.width, 0, padding * 2);
      states()[i] = {std::numeric_limits<float>::lowest(), 0.0F, 0.0F};
      if (smoothing().is_there()) logit_sums()[i] = 0.0F;
    }
  }

  const std::byte* weight_at(const EntryRange& block) const {
    return reinterpret_cast<const std::byte*>(weight_.at(block.first));
  }

  void make_logits(int64_t rows, const EntryRange& block) {
    ran_.logits = program::ProductAlgorithm::wide;
    multiply_wide(plan_.logits_spec(rows, block.count),
                  {.a = reinterpret_cast<const std::byte*>(gathered(0)),
                   .b = weight_at(block),
                   .c = reinterpret_cast<std::byte*>(logits(0))},
                  workspace<std::byte>(plan_.scratch_offset), context_);
  }

  void add_to_sums(int64_t rows, const EntryRange& block) {
    ran_.dhidden = program::ProductAlgorithm::wide;
    multiply_wide(plan_.sums_spec(rows, block.count, block.first > 0),
                  {.a = reinterpret_cast<const std::byte*>(logits(0)),
                   .b = weight_at(block),
                   .c = reinterpret_cast<std::byte*>(sums(0))},
                  workspace<std::byte>(plan_.scratch_offset), context_);
  }

  // `target` counts from the block's first entry and may be outside the block. The exponentials
  // overwrite the logits.
  void add_row(int64_t target, const EntryRange& block, int64_t row) const {
    RowState& state = states()[row];
    float* const x = logits(row);
    if (target >= 0 && target < block.count) state.target_logit = x[target];
    if (smoothing().is_there())
      logit_sums()[row] += sum_of({x, kF32, block.count}, *context_.kernels.softmax);
    const float factor =
        softmax_.add(x, block.count, &state.largest, &state.sum, reinterpret_cast<uint16_t*>(x));
    if (shape_.train && block.first > 0 && factor != 1.0F)
      softmax_.scale(sums(row), shape_.width, factor);
  }

  LossSmoothing smoothing() const { return {shape_.smoothing, shape_.vocab}; }
  bool has_mean_weight() const { return smoothing().is_there() && shape_.train; }

  // The mean of the weight's rows, of which the gradient of hidden has a share.
  void make_mean_weight() const {
    constexpr int64_t kColumns = 256;
    const auto sum_rows = context_.kernels.elementwise->sum_rows[kBf16];
    const float inverse = 1.0F / static_cast<float>(shape_.vocab);
    parallel_ranges(shape_.width, kColumns, [&](int64_t begin, int64_t end) {
      float* const mean = mean_weight() + begin;
      sum_rows(reinterpret_cast<const uint16_t*>(weight_.at(0)) + begin, weight_.stride,
               shape_.vocab, end - begin, mean);
      for (int64_t j = 0; j < end - begin; ++j) mean[j] *= inverse;
    });
  }

  // Adds to a row's sums what smoothing changes of the weight's rows that are taken from them:
  // instead of the target's row, a share of it and of the mean.
  void smooth_sums(const uint16_t* target_row, int64_t row) const {
    float* const sums_of_row = sums(row);
    const float* const mean = mean_weight();
    const float share = shape_.smoothing * states()[row].sum;
    for (int64_t j = 0; j < shape_.width; ++j)
      sums_of_row[j] += share * (base::to_float(base::BFloat16{target_row[j]}) - mean[j]);
  }

  void finish(int64_t token, int64_t row) const {
    const RowState& state = states()[row];
    float logit = state.target_logit;
    if (smoothing().is_there()) logit = smoothing().logit(logit, logit_sums()[row]);
    losses_[token] = Statistics{state.largest, state.sum}.loss(logit);
    if (!shape_.train) return;
    const auto* const target_row = reinterpret_cast<const uint16_t*>(weight_.at(targets_[token]));
    if (has_mean_weight()) smooth_sums(target_row, row);
    softmax_.gradient(sums(row), target_row, shape_.width, {1.0F / state.sum, factors_[token]},
                      reinterpret_cast<uint16_t*>(dhidden_.at(token)));
  }

  // Overwrites a row's logits with their gradients.
  void differentiate(int64_t token, const EntryRange& block, int64_t row) const {
    const RowState& state = states()[row];
    make_gradient({.data = logits(row), .element = kF32, .count = block.count},
                  {.data = logits(row),
                   .element = kBf16,
                   .target = targets_[token] - block.first,
                   .lse = Statistics{state.largest, state.sum}.lse(),
                   .scale = factors_[token],
                   .cap = 0.0F,
                   .smoothing = smoothing()},
                  *context_.kernels.softmax);
  }

  const OnlineLossPlan& plan_;
  const LossShape& shape_;
  const Invocation& invocation_;
  const CpuContext& context_;
  const OnlineSoftmaxKernels& softmax_;
  Rows hidden_;
  Rows weight_;
  Rows dhidden_;
  const int32_t* targets_;
  TokenFactors factors_;
  float* losses_;
  const Buffer& loss_;
  const Buffer* dweight_;  // null: not computed
  int32_t* row_numbers_;
  LossAlgorithms ran_ = {};
  // The columns from one block to the next; for a single block, its entries rounded up to whole
  // panels.
  int64_t columns_ = 0;
};

}  // namespace

bool is_online_loss(DType type, const CpuContext& context) {
  return type == DType::bf16 && context.kernels.wide_product->multiply != nullptr;
}

LossShape with_online_algorithms(LossShape shape) {
  using program::ProductAlgorithm;
  shape.whole = {
      .logits = ProductAlgorithm::wide,
      .dhidden = shape.train ? ProductAlgorithm::wide : ProductAlgorithm::loops,
      .dweight = shape.weight_gradient ? ProductAlgorithm::wide : ProductAlgorithm::loops};
  shape.rest = {};
  return shape;
}

int64_t online_chunk_rows(int64_t tokens) {
  const int64_t chunks = ceil_div(tokens, kChunkRows);
  return round_up(ceil_div(tokens, chunks), kWidePanel);
}

int64_t online_block_columns(int64_t vocab) {
  return std::min(kMaxEntries, round_up(vocab, kWidePanel));
}

OnlineLossPlan::OnlineLossPlan(const LossShape& shape, const CpuContext& context) : shape_(shape) {
  constexpr int64_t kFloat = sizeof(float);
  SNUG_CHECK(shape.chunk_rows > 0 && shape.block_columns > 0 && is_online_loss(shape.type, context),
             "an online loss in chunks of {} rows and {} columns, which the cpu backend does not "
             "run here",
             shape.chunk_rows, shape.block_columns);
  SNUG_CHECK(shape.whole == with_online_algorithms(shape).whole,
             "an online loss with logits by algorithm {}, which the cpu backend does not run",
             base::word_of(shape.whole.logits));
  depth = round_up(shape.width, kWidePanel);
  hidden_stride = depth + kGap;
  chunk_rows = shape.chunk_rows;
  block_entries = shape.block_columns;
  logits_stride = block_entries + kGap;
  hidden_offset = whole_lines(shape.tokens * static_cast<int64_t>(sizeof(int32_t)));
  sums_offset = hidden_offset + chunk_rows * hidden_stride * 2;
  rows_offset = sums_offset + (shape.train ? chunk_rows * depth * kFloat : 0);
  logit_sums_offset =
      rows_offset + whole_lines(chunk_rows * static_cast<int64_t>(sizeof(RowState)));
  const bool is_smoothed = shape.smoothing > 0.0F;
  mean_weight_offset = logit_sums_offset + (is_smoothed ? whole_lines(chunk_rows * kFloat) : 0);
  logits_offset =
      mean_weight_offset + (is_smoothed && shape.train ? whole_lines(shape.width * kFloat) : 0);
  scratch_offset = logits_offset + chunk_rows * logits_stride * kFloat;
  workspace_bytes_ = scratch_offset + scratch_bytes(context);
}

MatmulSpec OnlineLossPlan::logits_spec(int64_t rows, int64_t entries) const {
  MatmulSpec spec{.m = rows, .n = entries, .k = shape_.width};
  spec.a_type = spec.b_type = DType::bf16;
  spec.a_strides[0] = hidden_stride;
  spec.b_strides[0] = 1;
  spec.b_strides[1] = shape_.weight_stride;
  spec.c_stride = logits_stride;
  return spec;
}

MatmulSpec OnlineLossPlan::sums_spec(int64_t rows, int64_t entries, bool adds) const {
  MatmulSpec spec{.m = rows, .n = shape_.width, .k = entries};
  spec.a_type = spec.b_type = DType::bf16;
  spec.a_strides[0] = 2 * logits_stride;
  spec.b_strides[0] = shape_.weight_stride;
  spec.c_stride = depth;
  if (adds) spec.add = MatmulSpec::Add::destination;
  return spec;
}

MatmulSpec OnlineLossPlan::dweight_spec(int64_t rows, int64_t entries, bool adds) const {
  MatmulSpec spec{.m = entries, .n = shape_.width, .k = rows};
  spec.a_type = spec.b_type = DType::bf16;
  spec.c_type = shape_.dweight_type;
  spec.a_strides[0] = 1;
  spec.a_strides[1] = 2 * logits_stride;
  spec.b_strides[0] = hidden_stride;
  spec.c_stride = shape_.dweight_stride;
  if (adds) spec.add = MatmulSpec::Add::destination;
  return spec;
}

// The most for any chunk and block, since the number of rows that carry loss is known only when it
// runs.
int64_t OnlineLossPlan::scratch_bytes(const CpuContext& context) const {
  int64_t bytes = 0;
  const int64_t rest = shape_.vocab % block_entries;
  for (int64_t rows = 1; rows <= chunk_rows; ++rows)
    for (const int64_t entries : {std::min(block_entries, shape_.vocab), rest}) {
      if (entries == 0) continue;
      bytes = std::max(bytes, wide_scratch_bytes(logits_spec(rows, entries), context));
      if (shape_.train)
        bytes = std::max(bytes, wide_scratch_bytes(sums_spec(rows, entries, true), context));
      if (shape_.weight_gradient)
        bytes = std::max(bytes, wide_scratch_bytes(dweight_spec(rows, entries, true), context));
    }
  return bytes;
}

void run_online_loss(const OnlineLossPlan& plan, const LossOperands<Buffer>& operands,
                     const Invocation& invocation, const CpuContext& context) {
  OnlineRun(plan, operands, invocation, context).run();
}

}  // namespace snug::backends::cpu
