#include "backends/cpu/online_loss.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/softmax_rows.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

using base::DType;

// More rows cost bytes, fewer read and pack the weight more often: at this many that takes a tenth
// of the time of the products.
constexpr int64_t kChunkRows = 1024;
// Of a packed block of the weight, in one of its two forms: both stay in a second-level cache of
// 2 MiB next to the logits and sums of some rows.
constexpr int64_t kWeightBlockBytes = int64_t{448} << 10;
// A block's exponentials are multiplied along its entries, and the sums read and written once:
// fewer entries make that a large part.
constexpr int64_t kMinEntries = 192;
// Rows that a thread takes through both products.
constexpr int64_t kRows = 128;
// Between rows of exponentials: strides of a power of two would fall into few sets of a cache.
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
        kernels_(context.kernels),
        softmax_(*context.kernels.online_softmax),
        hidden_(rows_of(operands.hidden)),
        weight_(rows_of(operands.weight)),
        targets_(integers_of(operands.targets)),
        inverse_tokens_(*operands.inverse_tokens.as<float>()),
        losses_(operands.losses.as<float>()),
        loss_(operands.loss),
        row_numbers_(invocation.workspace.as<int32_t>()) {
    if (shape_.train) dhidden_ = rows_of(*operands.dhidden);
  }

  void run() {
    const int64_t trained = list_trained_rows(shape_, targets_, losses_, dhidden_, row_numbers_);
    invocation_.note_decision("chunk_rows", plan_.chunk_rows);
    invocation_.note_decision("algorithm", program::LossAlgorithm::online);
    note_algorithms(shape_.train, with_online_algorithms(shape_).whole, {}, invocation_);
    invocation_.note_extent({.rows = static_cast<double>(trained)});
    for (int64_t row = 0; row < trained; row += plan_.chunk_rows) {
      const int64_t rows = std::min(plan_.chunk_rows, trained - row);
      run_chunk(row, rows);
      invocation_.note_piece(rows);
    }
    sum_losses(losses_, shape_.tokens, inverse_tokens_, loss_);
  }

 private:
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
  uint16_t* gathered(int64_t row) const {
    return workspace<uint16_t>(plan_.hidden_offset) + row * plan_.hidden_stride;
  }

  void run_chunk(int64_t first_row, int64_t rows) {
    const int32_t* tokens = row_numbers_ + first_row;
    parallel_ranges(rows, 16, [&](int64_t begin, int64_t end) { gather(tokens, begin, end); });
    for (int64_t first = 0; first < shape_.vocab; first += plan_.block_entries) {
      const EntryRange block{first, std::min(plan_.block_entries, shape_.vocab - first)};
      parallel_ranges(block.count, kWidePanel,
                      [&](int64_t begin, int64_t end) { pack(block, begin, end); });
      parallel_ranges(rows, kRows,
                      [&](int64_t begin, int64_t end) { add_block(tokens, block, begin, end); });
    }
    parallel_ranges(rows, 16, [&](int64_t begin, int64_t end) { finish(tokens, begin, end); });
  }

  void gather(const int32_t* tokens, int64_t begin, int64_t end) const {
    const auto padding = static_cast<size_t>(plan_.depth - shape_.width);
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(gathered(i), hidden_.at(tokens[i]), static_cast<size_t>(shape_.width) * 2);
      std::memset(gathered(i) + shape_.width, 0, padding * 2);
      states()[i] = {std::numeric_limits<float>::lowest(), 0.0F, 0.0F};
    }
  }

  // A panel of entries as columns of the logits' product, and, where gradients are made, as steps
  // of k of the sums' product, in each of its panels.
  void pack(const EntryRange& block, int64_t begin, int64_t end) const {
    const auto* from = reinterpret_cast<const uint16_t*>(weight_.at(block.first + begin));
    const auto pack_pairs = kernels_.thin_product->pack_pairs;
    pack_pairs({from, 1, weight_.stride}, shape_.width, end - begin,
               workspace<uint16_t>(plan_.keys_offset) + begin * plan_.depth, kWidePanel);
    if (!shape_.train) return;
    const int64_t entries = round_up(block.count, kWidePanel);
    auto* values = workspace<uint16_t>(plan_.values_offset) + begin * kWidePanel;
    for (int64_t j = 0; j < shape_.width; j += kWidePanel)
      pack_pairs({from + j, weight_.stride, 1}, end - begin, std::min(kWidePanel, shape_.width - j),
                 values + j * entries, kWidePanel);
  }

  void add_block(const int32_t* tokens, const EntryRange& block, int64_t begin, int64_t end) const {
    std::byte* const scratch =
        workspace<std::byte>(plan_.threads_offset + current_thread() * plan_.thread_bytes);
    auto* logits = reinterpret_cast<float*>(scratch);
    auto* exponentials = reinterpret_cast<uint16_t*>(scratch + plan_.exponentials_offset);
    const int64_t stride = plan_.block_entries + kGap;
    kernels_.wide_product->multiply({.a = gathered(begin),
                                     .a_stride = plan_.hidden_stride,
                                     .b = workspace<uint16_t>(plan_.keys_offset),
                                     .rows = end - begin,
                                     .columns = block.count,
                                     .k = plan_.depth,
                                     .result = result_of(logits, stride, false)});
    for (int64_t i = begin; i < end; ++i)
      add_row(targets_[tokens[i]] - block.first, block, i, logits + (i - begin) * stride,
              exponentials + (i - begin) * stride);
    if (!shape_.train) return;
    kernels_.wide_product->multiply(
        {.a = exponentials,
         .a_stride = stride,
         .b = workspace<uint16_t>(plan_.values_offset),
         .rows = end - begin,
         .columns = shape_.width,
         .k = round_up(block.count, kWidePanel),
         .result = result_of(sums(begin), plan_.depth, block.first > 0)});
  }

  // `target` counts from the block's first entry and may lie outside.
  void add_row(int64_t target, const EntryRange& block, int64_t row, const float* logits,
               uint16_t* exponentials) const {
    RowState& state = states()[row];
    if (target >= 0 && target < block.count) state.target_logit = logits[target];
    const float factor =
        softmax_.add(logits, block.count, &state.largest, &state.sum, exponentials);
    if (shape_.train && block.first > 0 && factor != 1.0F)
      softmax_.scale(sums(row), shape_.width, factor);
  }

  static WideResult result_of(float* c, int64_t stride, bool accumulate) {
    return {.c = c,
            .addend = accumulate ? c : nullptr,
            .c_is_bf16 = false,
            .addend_is_bf16 = false,
            .c_stride = stride,
            .addend_stride = stride,
            .alpha = 1.0F};
  }

  void finish(const int32_t* tokens, int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      const RowState& state = states()[i];
      const int64_t token = tokens[i];
      losses_[token] = Statistics{state.largest, state.sum}.loss(state.target_logit);
      if (!shape_.train) continue;
      softmax_.gradient(sums(i), reinterpret_cast<const uint16_t*>(weight_.at(targets_[token])),
                        shape_.width, {1.0F / state.sum, inverse_tokens_},
                        reinterpret_cast<uint16_t*>(dhidden_.at(token)));
    }
  }

  const OnlineLossPlan& plan_;
  const LossShape& shape_;
  const Invocation& invocation_;
  const Kernels& kernels_;
  const OnlineSoftmaxKernels& softmax_;
  Rows hidden_;
  Rows weight_;
  Rows dhidden_;
  const int32_t* targets_;
  float inverse_tokens_;
  float* losses_;
  const Buffer& loss_;
  int32_t* row_numbers_;
};

}  // namespace

bool is_online_loss(DType type, bool weight_gradient, const CpuContext& context) {
  return type == DType::bf16 && !weight_gradient &&
         context.kernels.wide_product->multiply != nullptr;
}

LossShape with_online_algorithms(LossShape shape) {
  using program::ProductAlgorithm;
  shape.whole = {.logits = ProductAlgorithm::wide,
                 .dhidden = shape.train ? ProductAlgorithm::wide : ProductAlgorithm::loops};
  shape.rest = {};
  return shape;
}

int64_t online_chunk_rows(int64_t tokens) {
  const int64_t chunks = ceil_div(tokens, kChunkRows);
  return round_up(ceil_div(tokens, chunks), kWidePanel);
}

OnlineLossPlan::OnlineLossPlan(const LossShape& shape, const CpuContext& context) : shape_(shape) {
  constexpr int64_t kFloat = sizeof(float);
  SNUG_CHECK(shape.chunk_rows > 0 && is_online_loss(shape.type, shape.weight_gradient, context),
             "an online loss in chunks of {} rows, which the cpu backend does not run here",
             shape.chunk_rows);
  SNUG_CHECK(shape.whole == with_online_algorithms(shape).whole,
             "an online loss with logits by algorithm {}, which the cpu backend does not run",
             base::word_of(shape.whole.logits));
  depth = round_up(shape.width, kWidePanel);
  hidden_stride = depth + kGap;
  chunk_rows = shape.chunk_rows;
  const int64_t fitting = kWeightBlockBytes / (2 * depth) / kWidePanel * kWidePanel;
  block_entries =
      std::min(std::clamp<int64_t>(fitting, kMinEntries, 512), round_up(shape.vocab, kWidePanel));
  const int64_t rows = std::min(kRows, chunk_rows);
  const int64_t stride = block_entries + kGap;
  exponentials_offset = rows * stride * kFloat;
  thread_bytes = exponentials_offset + whole_lines(rows * stride * 2);
  const int64_t weight_bytes = block_entries * depth * 2;
  hidden_offset = whole_lines(shape.tokens * static_cast<int64_t>(sizeof(int32_t)));
  sums_offset = hidden_offset + chunk_rows * hidden_stride * 2;
  rows_offset = sums_offset + (shape.train ? chunk_rows * depth * kFloat : 0);
  keys_offset = rows_offset + whole_lines(chunk_rows * static_cast<int64_t>(sizeof(RowState)));
  values_offset = keys_offset + weight_bytes;
  threads_offset = values_offset + (shape.train ? weight_bytes : 0);
  workspace_bytes_ = threads_offset + context.threads * thread_bytes;
}

void run_online_loss(const OnlineLossPlan& plan, const LossOperands<Buffer>& operands,
                     const Invocation& invocation, const CpuContext& context) {
  OnlineRun(plan, operands, invocation, context).run();
}

}  // namespace snug::backends::cpu
