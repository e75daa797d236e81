#include <algorithm>
#include <cstring>

#include "backends/cpu/attention/softmax_rows.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/loss/loss_plan.h"
#include "backends/cpu/loss/loss_vectors.h"
#include "backends/cpu/loss/online_loss.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "backends/loss_operands.h"
#include "base/error.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::cpu {
namespace {

void clear(std::byte* data, int64_t bytes) { std::memset(data, 0, static_cast<size_t>(bytes)); }

// One run of a linear cross-entropy.
class LossRun {
 public:
  LossRun(const LossPlan& plan, const LossOperands<Buffer>& operands, const Invocation& invocation,
          CpuContext& context)
      : plan_(plan),
        shape_(plan.shape()),
        operands_(operands),
        invocation_(invocation),
        context_(context),
        kernels_(*context.kernels.softmax),
        hidden_(rows_of(operands.hidden)),
        targets_(integers_of(operands.targets)),
        factors_(factors_of(operands.inverse_tokens)),
        losses_(operands.losses.as<float>()),
        row_numbers_(invocation.workspace.as<int32_t>()),
        vectors_(plan.shape(), operands,
                 reinterpret_cast<float*>(invocation.workspace.data + plan.vectors_offset()),
                 context.kernels) {
    if (shape_.train) dhidden_ = rows_of(*operands.dhidden);
  }

  void run() {
    const int64_t trained = list_trained_rows(shape_, targets_, losses_, dhidden_, row_numbers_);
    invocation_.note_extent({.rows = static_cast<double>(trained)});
    bool first = !shape_.accumulate;
    for (int64_t done = 0; done < trained;) {
      const LossChunk& chunk = plan_.next(trained - done);
      run_chunk({chunk, done, std::min(chunk.rows, trained - done), first});
      invocation_.note_piece(chunk.rows);
      done += chunk.rows;
      first = false;
    }
    if (first && operands_.dweight != nullptr) clear_dweight();
    vectors_.write_gradients();
    if (trained > 0) {
      using Loss = program::LinearCrossEntropyTrain;
      invocation_.note_decision<&Loss::chunks, &program::LossChunks::algorithm>(
          program::LossAlgorithm::halved_chunks);
      invocation_.note_decision<&Loss::products, &program::LossProducts::block_columns>(
          most_columns_);
      note_algorithms(ran_.whole, ran_.rest, invocation_);
    }
    sum_losses(losses_, shape_.tokens, factors_, operands_.loss);
  }

 private:
  // Rows [first_row, first_row + rows) in the list of rows that carry loss; further rows up to
  // chunk.rows are zeros.
  struct Part {
    const LossChunk& chunk;
    int64_t first_row;
    int64_t rows;
    bool overwrite_dweight;
  };

  std::byte* workspace(int64_t offset) const { return invocation_.workspace.data + offset; }
  std::byte* logits(const Part& part, int64_t block) const {
    return workspace(plan_.logits_offset(part.chunk, block));
  }
  // The result of the product, before bias and gain.
  std::byte* products(const Part& part, int64_t block) const {
    return workspace(plan_.product_offset(part.chunk, block));
  }
  int64_t token(const Part& part, int64_t i) const { return row_numbers_[part.first_row + i]; }

  void run_chunk(const Part& part) {
    gather(part);
    for (int64_t block = 0; block < plan_.blocks(); ++block) {
      const Product& product = plan_.products(part.chunk, block).logits;
      most_columns_ = std::max(most_columns_, product.spec().n);
      ran(block).logits = product
                              .multiply({.a = workspace(plan_.hidden_offset()),
                                         .b = weight_block(block),
                                         .c = products(part, block)},
                                        workspace(plan_.scratch_offset()), context_)
                              .algorithm;
    }
    if (!shape_.train) {
      parallel_for(part.rows, [&](int64_t i) { row_statistics(part, i); });
      return;
    }
    softmax_in_place(part);
    for (int64_t block = 0; block < plan_.blocks(); ++block) take_gradients(part, block);
    for (int64_t block = 0; block < plan_.blocks(); ++block) multiply_gradients(part, block);
    scatter(part);
  }

  // The record of the algorithms used for a block of columns; a narrower last block has its own.
  LossAlgorithms& ran(int64_t block) {
    return plan_.columns(block) == most_columns_ ? ran_.whole : ran_.rest;
  }

  const std::byte* weight_block(int64_t block) const {
    return operands_.weight.data +
           block * plan_.block_columns() * shape_.weight_stride * base::size_of(shape_.type);
  }

  void gather(const Part& part) {
    const int64_t bytes = hidden_.columns * hidden_.element_bytes();
    std::byte* to = workspace(plan_.hidden_offset());
    parallel_ranges(part.chunk.rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (i < part.rows)
          std::memcpy(to + i * bytes, hidden_.at(token(part, i)), static_cast<size_t>(bytes));
        else
          clear(to + i * bytes, bytes);
      }
    });
  }

  // Computes dweight and dhidden of a block while the gradients of its logits are in the cache.
  void multiply_gradients(const Part& part, int64_t block) {
    const BlockProducts& products = plan_.products(part.chunk, block);
    std::byte* scratch = workspace(plan_.scratch_offset());
    if (operands_.dweight != nullptr) {
      const Product& product =
          part.overwrite_dweight ? *products.dweight_first : *products.dweight_next;
      std::byte* to = operands_.dweight->data + block * plan_.block_columns() *
                                                    shape_.dweight_stride *
                                                    base::size_of(shape_.dweight_type);
      const RanProduct made = product.multiply(
          {.a = logits(part, block), .b = workspace(plan_.hidden_offset()), .c = to}, scratch,
          context_);
      ran(block).dweight = made.algorithm;
      ran(block).dweight_step = made.step;
    }
    const Product& product = block == 0 ? *products.dhidden_first : *products.dhidden_next;
    ran(block).dhidden = product
                             .multiply({.a = logits(part, block),
                                        .b = weight_block(block),
                                        .c = workspace(plan_.dhidden_offset())},
                                       scratch, context_)
                             .algorithm;
  }

  void take_gradients(const Part& part, int64_t block) {
    Rows rows{.data = logits(part, block),
              .element = element_of(shape_.type),
              .rows = part.rows,
              .columns = plan_.columns(block),
              .stride = plan_.columns(block)};
    const Rows dlogits = rows;
    rows.data = products(part, block);
    rows.element = kF32;
    vectors_.take(dlogits, rows, block * plan_.block_columns());
  }

  void scatter(const Part& part) {
    const auto* from = reinterpret_cast<const float*>(workspace(plan_.dhidden_offset()));
    const auto convert = context_.kernels.elementwise->convert[kF32][dhidden_.element];
    parallel_ranges(part.rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        convert(from + i * shape_.width, dhidden_.at(token(part, i)), shape_.width);
    });
  }

  LogitRun logit_run(const Part& part, int64_t i, int64_t block) const {
    const int64_t count = plan_.columns(block);
    return {reinterpret_cast<const float*>(logits(part, block)) + i * count, kF32, count};
  }

  void finish_row(const Part& part, int64_t i) const {
    for (int64_t block = 0; block < plan_.blocks(); ++block) {
      const int64_t count = plan_.columns(block);
      vectors_.finish_logits(reinterpret_cast<float*>(products(part, block)) + i * count,
                             reinterpret_cast<float*>(logits(part, block)) + i * count,
                             block * plan_.block_columns(), count);
    }
  }

  // The softmax statistics of row i of a chunk, after bias, gain and cap were applied to its
  // logits. Also sets the row's loss.
  Statistics row_statistics(const Part& part, int64_t i) const {
    finish_row(part, i);
    Statistics row = statistics_of(logit_run(part, i, 0), kernels_);
    for (int64_t block = 1; block < plan_.blocks(); ++block)
      row = merged(row, statistics_of(logit_run(part, i, block), kernels_));
    const int64_t target = targets_[token(part, i)];
    const int64_t block = target / plan_.block_columns();
    const float logit =
        logit_at(logit_run(part, i, block).data, kF32, target % plan_.block_columns());
    losses_[token(part, i)] = row.loss(smoothed_logit(part, i, logit));
    return row;
  }

  LossSmoothing smoothing() const { return {shape_.smoothing, shape_.vocab}; }

  // What stands for the target's logit in the loss of row i of a chunk.
  float smoothed_logit(const Part& part, int64_t i, float logit) const {
    if (!smoothing().is_there()) return logit;
    float sum = 0.0F;
    for (int64_t block = 0; block < plan_.blocks(); ++block)
      sum += sum_of(logit_run(part, i, block), kernels_);
    return smoothing().logit(logit, sum);
  }

  void row_gradients(const Part& part, int64_t i) const {
    const float lse = row_statistics(part, i).lse();
    const int64_t target = targets_[token(part, i)];
    const int64_t size = base::size_of(shape_.type);
    for (int64_t block = 0; block < plan_.blocks(); ++block) {
      std::byte* to = logits(part, block) + i * plan_.columns(block) * size;
      make_gradient(logit_run(part, i, block),
                    {.data = to,
                     .element = element_of(shape_.type),
                     .target = target - block * plan_.block_columns(),
                     .lse = lse,
                     .scale = factors_[token(part, i)] * shape_.scale,
                     .cap = shape_.softcap,
                     .smoothing = smoothing()},
                    kernels_);
    }
  }

  // Turns the fp32 logits of each block into gradients of the factors' type in the same memory, in
  // rows without gaps. bf16 row i ends where fp32 row (i + 1) / 2 begins, so once all rows below n
  // have been read, rows [n, 2n) may be written in parallel: one row, then one, two, four, ...
  void softmax_in_place(const Part& part) {
    if (shape_.type == base::DType::f32) {
      parallel_for(part.rows, [&](int64_t i) { row_gradients(part, i); });
    } else {
      for (int64_t begin = 0, end = 1; begin < part.rows; begin = end, end *= 2)
        parallel_for(std::min(end, part.rows) - begin,
                     [&](int64_t i) { row_gradients(part, begin + i); });
    }
    for (int64_t block = 0; block < plan_.blocks(); ++block) {
      const int64_t row_bytes = plan_.columns(block) * base::size_of(shape_.type);
      clear(logits(part, block) + part.rows * row_bytes, (part.chunk.rows - part.rows) * row_bytes);
    }
  }

  void clear_dweight() {
    const Rows dweight = rows_of(*operands_.dweight);
    parallel_ranges(dweight.rows, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        clear(dweight.at(i), dweight.columns * dweight.element_bytes());
    });
  }

  const LossPlan& plan_;
  const LossShape& shape_;
  const LossOperands<Buffer>& operands_;
  const Invocation& invocation_;
  CpuContext& context_;
  const SoftmaxKernels& kernels_;
  Rows hidden_;
  Rows dhidden_;
  const int32_t* targets_;
  TokenFactors factors_;
  float* losses_;
  int32_t* row_numbers_;
  LossVectors vectors_;
  struct {
    LossAlgorithms whole, rest;
  } ran_;
  int64_t most_columns_ = 0;  // the largest number of columns in a block whose logits were computed
};

bool is_online(const LossShape& shape) { return shape.algorithm == program::LossAlgorithm::online; }

// The online algorithm needs logits that are plain products.
template <typename Form>
bool has_plain_logits(const Form& form) {
  return form.scale == 1.0F && form.softcap == 0.0F && !form.bias && !form.gain;
}

template <typename Loss>
std::unique_ptr<Prepared> prepare_loss(const Loss& loss, const program::OperationView& view,
                                       CpuContext& context) {
  const LossShape shape = shape_of(loss, view);
  SNUG_CHECK(
      !is_online(shape) || has_plain_logits(shape),
      "a linear cross-entropy of logits that are scaled, capped, or have a bias or a gain, with "
      "algorithm {}, which the cpu backend does not run",
      base::word_of(shape.algorithm));
  check_products(shape);
  if (is_online(shape)) return std::make_unique<OnlineLossPlan>(shape, context);
  auto plan = std::make_unique<LossPlan>(shape, context);
  plan->create();
  return plan;
}

template <typename Loss>
int64_t loss_workspace_bytes(const Loss& loss, const program::OperationView& view,
                             const CpuContext& context) {
  const LossShape shape = shape_of(loss, view);
  if (is_online(shape)) return OnlineLossPlan(shape, context).workspace_bytes();
  return LossPlan(shape, context).workspace_bytes();
}

template <typename Loss>
Loss decide_loss(const Loss& asked_for, const program::OperationView& view,
                 const CpuContext& context) {
  using program::LossAlgorithm;
  Loss loss = asked_for;
  const program::Tensor& hidden = view[Loss::kHidden];
  const int64_t vocab = view[Loss::kWeight].shape[0];
  // A chunk size that is given means chunks of logits, so the online algorithm is then not used.
  const bool online =
      loss.chunks.rows == 0 && has_plain_logits(loss) && is_online_loss(hidden.dtype, context);
  loss.chunks.algorithm = online ? LossAlgorithm::online : LossAlgorithm::halved_chunks;
  if (loss.chunks.rows == 0)
    loss.chunks.rows =
        online ? online_chunk_rows(hidden.shape[0]) : default_chunk_rows(vocab, hidden.shape[0]);
  loss.products.block_columns = online ? online_block_columns(vocab) : default_block_columns(vocab);
  const LossShape asked = shape_of(loss, view);
  const LossShape shape = online ? with_online_algorithms(asked) : with_algorithms(asked, context);
  loss.products.main = shape.whole;
  loss.products.rest = shape.rest;
  return loss;
}

// Whether the head is multiplied in place. The library would copy a head with gaps between its rows
// for every chunk: such a loss is instead split into separate operations, whose products decide
// what they copy.
template <typename Loss>
bool multiplies_in_place(const Loss& loss, const program::OperationView& view,
                         const CpuContext& context) {
  const LossShape asked = shape_of(loss, view);
  const bool has_gaps = asked.weight_stride != asked.width ||
                        (asked.weight_gradient && asked.dweight_stride != asked.width);
  if (!has_gaps) return true;
  const bool is_decided = asked.block_columns > 0;
  const LossShape shape = is_decided ? asked : shape_of(decide_loss(loss, view, context), view);
  return is_online(shape) || !copies_matrices(shape);
}

template <typename Loss>
void run_loss(const Loss& loss, const Invocation& invocation, CpuContext& context) {
  const LossOperands<Buffer> operands = loss_operands(loss, invocation);
  SNUG_CHECK(invocation.prepared != nullptr, "a linear cross-entropy that was not prepared");
  if (loss.chunks.algorithm == program::LossAlgorithm::online)
    return run_online_loss(static_cast<const OnlineLossPlan&>(*invocation.prepared), operands,
                           invocation, context);
  LossRun(static_cast<const LossPlan&>(*invocation.prepared), operands, invocation, context).run();
}

void run(const program::LinearCrossEntropy& loss, const Invocation& invocation,
         CpuContext& context) {
  run_loss(loss, invocation, context);
}

void run(const program::LinearCrossEntropyTrain& loss, const Invocation& invocation,
         CpuContext& context) {
  run_loss(loss, invocation, context);
}

bool supports(const program::LinearCrossEntropy& loss, const program::OperationView& view,
              const CpuContext& context) {
  using Loss = program::LinearCrossEntropy;
  return supports_product(view[Loss::kHidden].dtype, view[Loss::kWeight].dtype, base::DType::f32,
                          context) &&
         multiplies_in_place(loss, view, context);
}

bool supports(const program::LinearCrossEntropyTrain& loss, const program::OperationView& view,
              const CpuContext& context) {
  using Loss = program::LinearCrossEntropyTrain;
  const base::DType type = view[Loss::kHidden].dtype;
  const base::DType weight = view[Loss::kWeight].dtype;
  return supports_product(type, weight, base::DType::f32, context) &&
         (!loss.weight_gradient ||
          supports_product(type, type, view[Loss::kDWeight].dtype, context)) &&
         multiplies_in_place(loss, view, context);
}

template <typename Loss>
bool asks_any(const Loss& loss) {
  const auto has = [](const LossAlgorithms& algorithms) {
    constexpr auto kLibrary = ProductAlgorithm::library;
    return algorithms.logits == kLibrary || algorithms.dhidden == kLibrary ||
           algorithms.dweight == kLibrary;
  };
  return has(loss.products.main) || has(loss.products.rest);
}

}  // namespace

SNUG_CPU_KIND(LinearCrossEntropy, .supports = supports,
              .decide = decide_loss<program::LinearCrossEntropy>,
              .workspace_bytes = loss_workspace_bytes<program::LinearCrossEntropy>,
              .asks_library = asks_any<program::LinearCrossEntropy>,
              .prepare = prepare_loss<program::LinearCrossEntropy>);
SNUG_CPU_KIND(LinearCrossEntropyTrain, .supports = supports,
              .decide = decide_loss<program::LinearCrossEntropyTrain>,
              .workspace_bytes = loss_workspace_bytes<program::LinearCrossEntropyTrain>,
              .asks_library = asks_any<program::LinearCrossEntropyTrain>,
              .prepare = prepare_loss<program::LinearCrossEntropyTrain>);

}  // namespace snug::backends::cpu
