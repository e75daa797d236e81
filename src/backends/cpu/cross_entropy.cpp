#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/loss_plan.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

float logit_at(const void* logits, Element element, int64_t index) {
  if (element == kF32) return static_cast<const float*>(logits)[index];
  return base::to_float(static_cast<const base::BFloat16*>(logits)[index]);
}

void set_gradient(void* gradient, Element element, int64_t index, float value) {
  if (element == kF32)
    static_cast<float*>(gradient)[index] = value;
  else
    static_cast<base::BFloat16*>(gradient)[index] = base::to_bfloat16(value);
}

// One row of logits and the token it should foretell.
struct LossRow {
  const void* logits;
  Element element;
  int64_t vocab;
  int64_t target;
};

// log(sum(exp(logits))), and -log p(target), whose small difference is taken before the large term.
struct RowLoss {
  float lse;
  float loss;
};

RowLoss row_loss(const LossRow& row, const SoftmaxKernels& kernels) {
  float largest = 0;
  float sum = 0;
  kernels.statistics[row.element](row.logits, row.vocab, &largest, &sum);
  const float log_sum = std::log(sum);
  return {.lse = largest + log_sum,
          .loss = log_sum - (logit_at(row.logits, row.element, row.target) - largest)};
}

// gradient = (softmax - onehot) * scale; may begin where the logits begin.
void row_gradient(const LossRow& row, float lse, float scale, Element element, void* gradient,
                  const SoftmaxKernels& kernels) {
  const float target = std::exp(logit_at(row.logits, row.element, row.target) - lse) - 1.0F;
  kernels.gradient[row.element][element](row.logits, row.vocab, lse, scale, gradient);
  set_gradient(gradient, element, row.target, target * scale);
}

int64_t checked_target(int32_t target, int64_t vocab) {
  SNUG_CHECK(target < vocab, "target {} of {}", target, vocab);
  return target;
}

// In token order, in fp64: the loss does not depend on threads or chunks.
void sum_losses(const float* losses, int64_t tokens, float inverse_tokens, const Buffer& loss) {
  double sum = 0;
  for (int64_t t = 0; t < tokens; ++t) sum += static_cast<double>(losses[t]);
  *loss.as<float>() = static_cast<float>(sum * static_cast<double>(inverse_tokens));
}

// One run of a linear cross-entropy.
class LossRun {
 public:
  LossRun(const LossPlan& plan, const Invocation& invocation, CpuContext& context)
      : plan_(plan),
        shape_(plan.shape()),
        invocation_(invocation),
        context_(context),
        kernels_(*context.kernels.softmax),
        hidden_(rows_of(invocation.reads[0])),
        targets_(integers_of(invocation.reads[2])),
        inverse_tokens_(*invocation.reads[3].as<float>()),
        losses_(invocation.writes[0].as<float>()),
        row_numbers_(reinterpret_cast<int32_t*>(workspace(plan.rows_offset()))) {
    if (shape_.train) dhidden_ = rows_of(invocation.writes[2]);
    if (shape_.weight_gradient)
      dweight_ = shape_.accumulate ? &invocation.updates[0] : &invocation.writes[3];
  }

  void run() {
    const int64_t trained = find_trained_rows();
    bool first = !shape_.accumulate;
    for (int64_t done = 0; done < trained;) {
      const LossChunk& chunk = plan_.next(trained - done);
      run_chunk(chunk, done, std::min(chunk.rows, trained - done), first);
      done += chunk.rows;
      first = false;
    }
    if (first && dweight_ != nullptr) clear_dweight();
    sum_losses(losses_, shape_.tokens, inverse_tokens_, invocation_.writes[1]);
  }

 private:
  std::byte* workspace(int64_t offset) const { return invocation_.workspace.data + offset; }
  int64_t width_bytes(const Rows& rows) const { return shape_.width * rows.element_bytes(); }

  // Lists the rows that carry loss; what others write is zero.
  int64_t find_trained_rows() {
    int64_t trained = 0;
    for (int64_t t = 0; t < shape_.tokens; ++t) {
      if (targets_[t] >= 0) {
        checked_target(targets_[t], shape_.vocab);
        row_numbers_[trained++] = static_cast<int32_t>(t);
        continue;
      }
      losses_[t] = 0;
      if (shape_.train) std::memset(dhidden_.at(t), 0, static_cast<size_t>(width_bytes(dhidden_)));
    }
    return trained;
  }

  void run_chunk(const LossChunk& chunk, int64_t first_row, int64_t rows, bool first) {
    std::byte* hidden = workspace(plan_.hidden_offset());
    std::byte* logits = workspace(plan_.logits_offset());
    std::byte* scratch = workspace(plan_.scratch_offset());
    const std::byte* weight = invocation_.reads[1].data;
    gather(first_row, rows, chunk.rows);
    chunk.logits.multiply({.a = hidden, .b = weight, .c = logits}, scratch, context_);
    if (!shape_.train) {
      parallel_for(rows, [&](int64_t i) { loss_of(first_row, i); });
      return;
    }
    softmax_in_place(first_row, rows, chunk.rows);
    if (dweight_ != nullptr) {
      const Product& product = first ? *chunk.dweight_first : *chunk.dweight_next;
      product.multiply({.a = logits, .b = hidden, .c = dweight_->data}, scratch, context_);
    }
    chunk.dhidden->multiply({.a = logits, .b = weight, .c = hidden}, scratch, context_);
    scatter(first_row, rows);
  }

  // Rows beyond `rows` are zeros: their logits are finite.
  void gather(int64_t first_row, int64_t rows, int64_t chunk_rows) {
    const int64_t bytes = width_bytes(hidden_);
    std::byte* to = workspace(plan_.hidden_offset());
    parallel_ranges(chunk_rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (i < rows)
          std::memcpy(to + i * bytes, hidden_.at(row_numbers_[first_row + i]),
                      static_cast<size_t>(bytes));
        else
          std::memset(to + i * bytes, 0, static_cast<size_t>(bytes));
      }
    });
  }

  void scatter(int64_t first_row, int64_t rows) {
    const int64_t bytes = width_bytes(dhidden_);
    const std::byte* from = workspace(plan_.hidden_offset());
    parallel_ranges(rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(dhidden_.at(row_numbers_[first_row + i]), from + i * bytes,
                    static_cast<size_t>(bytes));
    });
  }

  // The loss of row i of a chunk; returns its log-sum-exp.
  float loss_of(int64_t first_row, int64_t i) const {
    const int32_t token = row_numbers_[first_row + i];
    const RowLoss result = row_loss(loss_row(first_row, i), kernels_);
    losses_[token] = result.loss;
    return result.lse;
  }

  LossRow loss_row(int64_t first_row, int64_t i) const {
    const auto* logits = reinterpret_cast<const float*>(workspace(plan_.logits_offset()));
    return {.logits = logits + i * shape_.vocab,
            .element = kF32,
            .vocab = shape_.vocab,
            .target = targets_[row_numbers_[first_row + i]]};
  }

  // Turns fp32 logits into gradients of the factors' type in the same bytes, row after row without
  // gaps. A bf16 row i ends where fp32 row (i + 1) / 2 begins, so rows [n, 2n) may be written, all
  // at once, when rows below n were read: one row, then one, two, four, ...
  void softmax_in_place(int64_t first_row, int64_t rows, int64_t chunk_rows) {
    const Element element = element_of(shape_.type);
    const int64_t row_bytes = shape_.vocab * base::size_of(shape_.type);
    std::byte* gradients = workspace(plan_.logits_offset());
    const auto row = [&](int64_t i) {
      const float lse = loss_of(first_row, i);
      row_gradient(loss_row(first_row, i), lse, inverse_tokens_, element, gradients + i * row_bytes,
                   kernels_);
    };
    if (element == kF32) {
      parallel_for(rows, row);
    } else {
      for (int64_t begin = 0, end = 1; begin < rows; begin = end, end *= 2) {
        const int64_t count = std::min(end, rows) - begin;
        parallel_for(count, [&](int64_t i) { row(begin + i); });
      }
    }
    std::memset(gradients + rows * row_bytes, 0,
                static_cast<size_t>((chunk_rows - rows) * row_bytes));
  }

  void clear_dweight() {
    const Rows dweight = rows_of(*dweight_);
    parallel_ranges(dweight.rows, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::memset(dweight.at(i), 0, static_cast<size_t>(width_bytes(dweight)));
    });
  }

  const LossPlan& plan_;
  const LossShape& shape_;
  const Invocation& invocation_;
  CpuContext& context_;
  const SoftmaxKernels& kernels_;
  Rows hidden_;
  Rows dhidden_;
  const int32_t* targets_;
  float inverse_tokens_;
  float* losses_;
  int32_t* row_numbers_;
  const Buffer* dweight_ = nullptr;
};

LossShape shape_of(int64_t chunk_rows, const program::OperationView& view) {
  const MatrixLayout hidden = matrix_layout(view.read(0));
  const MatrixLayout weight = matrix_layout(view.read(1));
  LossShape shape{.tokens = hidden.rows, .width = hidden.columns, .vocab = weight.rows};
  shape.chunk_rows = chunk_rows;
  shape.type = hidden.dtype;
  shape.weight_stride = weight.row_stride;
  return shape;
}

LossShape shape_of(const program::LinearCrossEntropy& loss, const program::OperationView& view) {
  return shape_of(loss.chunk_rows, view);
}

LossShape shape_of(const program::LinearCrossEntropyTrain& loss,
                   const program::OperationView& view) {
  LossShape shape = shape_of(loss.chunk_rows, view);
  shape.train = true;
  shape.dhidden_type = view.write(2).dtype;
  shape.weight_gradient = loss.weight_gradient;
  shape.accumulate = loss.accumulate;
  if (!loss.weight_gradient) return shape;
  const MatrixLayout dweight = matrix_layout(loss.accumulate ? view.update(0) : view.write(3));
  shape.dweight_type = dweight.dtype;
  shape.dweight_stride = dweight.row_stride;
  return shape;
}

template <typename Loss>
std::unique_ptr<Prepared> prepare_loss(const Loss& loss, const program::OperationView& view,
                                       const CpuContext& context) {
  auto plan = std::make_unique<LossPlan>(shape_of(loss, view), context);
  plan->create();
  return plan;
}

void run_loss(const Invocation& invocation, CpuContext& context) {
  SNUG_CHECK(invocation.prepared != nullptr, "a linear cross-entropy that was not prepared");
  LossRun(static_cast<const LossPlan&>(*invocation.prepared), invocation, context).run();
}

}  // namespace

void run(const program::CrossEntropy&, const Invocation& invocation, CpuContext& context) {
  const Rows logits = rows_of(invocation.reads[0]);
  const int32_t* targets = integers_of(invocation.reads[1]);
  auto* losses = invocation.writes[0].as<float>();
  parallel_for(logits.rows, [&](int64_t t) {
    losses[t] = 0;
    if (targets[t] < 0) return;
    losses[t] = row_loss({logits.at(t), logits.element, logits.columns,
                          checked_target(targets[t], logits.columns)},
                         *context.kernels.softmax)
                    .loss;
  });
  sum_losses(losses, logits.rows, *invocation.reads[2].as<float>(), invocation.writes[1]);
}

void run(const program::CrossEntropyGrad&, const Invocation& invocation, CpuContext& context) {
  const Rows logits = rows_of(invocation.reads[0]);
  const int32_t* targets = integers_of(invocation.reads[1]);
  const float inverse_tokens = *invocation.reads[2].as<float>();
  const Rows dlogits = rows_of(invocation.writes[0]);
  parallel_for(logits.rows, [&](int64_t t) {
    if (targets[t] < 0) {
      std::memset(dlogits.at(t), 0, static_cast<size_t>(dlogits.columns * dlogits.element_bytes()));
      return;
    }
    const LossRow row{logits.at(t), logits.element, logits.columns,
                      checked_target(targets[t], logits.columns)};
    row_gradient(row, row_loss(row, *context.kernels.softmax).lse, inverse_tokens, dlogits.element,
                 dlogits.at(t), *context.kernels.softmax);
  });
}

void run(const program::LinearCrossEntropy&, const Invocation& invocation, CpuContext& context) {
  run_loss(invocation, context);
}

void run(const program::LinearCrossEntropyTrain&, const Invocation& invocation,
         CpuContext& context) {
  run_loss(invocation, context);
}

bool supports(const program::LinearCrossEntropy&, const program::OperationView& view,
              const CpuContext& context) {
  return supports_product(view.read(0).dtype, view.read(1).dtype, base::DType::f32, context);
}

bool supports(const program::LinearCrossEntropyTrain& loss, const program::OperationView& view,
              const CpuContext& context) {
  const base::DType type = view.read(0).dtype;
  if (!supports_product(type, view.read(1).dtype, base::DType::f32, context)) return false;
  if (!supports_product(type, type, view.write(2).dtype, context)) return false;
  if (!loss.weight_gradient) return true;
  const base::DType dweight = (loss.accumulate ? view.update(0) : view.write(3)).dtype;
  return supports_product(type, type, dweight, context);
}

int64_t workspace_bytes(const program::LinearCrossEntropy& loss, const program::OperationView& view,
                        const CpuContext& context) {
  return LossPlan(shape_of(loss, view), context).workspace_bytes();
}

int64_t workspace_bytes(const program::LinearCrossEntropyTrain& loss,
                        const program::OperationView& view, const CpuContext& context) {
  return LossPlan(shape_of(loss, view), context).workspace_bytes();
}

std::unique_ptr<Prepared> prepare(const program::LinearCrossEntropy& loss,
                                  const program::OperationView& view, CpuContext& context) {
  return prepare_loss(loss, view, context);
}

std::unique_ptr<Prepared> prepare(const program::LinearCrossEntropyTrain& loss,
                                  const program::OperationView& view, CpuContext& context) {
  return prepare_loss(loss, view, context);
}

}  // namespace snug::backends::cpu
