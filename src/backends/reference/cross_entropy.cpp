#include <algorithm>
#include <cmath>

#include "backends/loss_operands.h"
#include "backends/note_extent.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/softcap.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/product/matmul.h"

namespace snug::backends::reference {
namespace {

// log(sum(exp(row))) in two terms: its largest element, and the logarithm of the sum relative to
// it.
template <typename T>
struct LogSum {
  T largest;
  T log_rest;
};

template <typename T>
LogSum<T> log_sum_exp(const Floats<T>& logits, int64_t t) {
  T largest = logits.at(t, 0);
  for (int64_t j = 1; j < logits.columns(); ++j) largest = std::max(largest, logits.at(t, j));
  T sum = 0;
  for (int64_t j = 0; j < logits.columns(); ++j) sum += std::exp(logits.at(t, j) - largest);
  return {largest, std::log(sum)};
}

// What stands for the target's logit in the loss of a row: with smoothing e it is (1 - e) of that
// logit and e of the mean of all.
template <typename T>
T smoothed_logit(const Floats<T>& logits, int64_t t, int64_t target, T smoothing) {
  const T logit = logits.at(t, target);
  if (smoothing == T{0}) return logit;
  T sum = 0;
  for (int64_t j = 0; j < logits.columns(); ++j) sum += logits.at(t, j);
  const T mean = sum / static_cast<T>(logits.columns());
  return (T{1} - smoothing) * logit + smoothing * mean;
}

template <typename T>
int64_t checked_target(const Floats<T>& logits, int64_t target) {
  SNUG_CHECK(target < logits.columns(), "target {} of {}", target, logits.columns());
  return target;
}

// Runs one operation of the expansion, as if it were in a program.
template <typename T, typename Struct>
void run_step(const Struct& attributes, std::span<const Buffer> reads,
              std::span<const Buffer> writes, std::span<const Buffer> updates = {}) {
  const program::Attributes kind = attributes;
  Invocation invocation;
  invocation.attributes = &kind;
  invocation.reads = reads;
  invocation.writes = writes;
  invocation.updates = updates;
  run_kind<T>(attributes, invocation);
}

// The logits of all rows at once, whether or not they carry loss; the input of a gain, where there
// is one; and the gradients of the logits, which overwrite them unless a cap needs both.
struct WholeLogits {
  Buffer logits, before_gain, gradients;
};

int64_t matrices_of(const program::LinearCrossEntropy& loss) { return loss.gain ? 2 : 1; }
int64_t matrices_of(const program::LinearCrossEntropyTrain& train) {
  return (train.gain ? 2 : 1) + (train.softcap > 0 ? 1 : 0);
}

template <typename T, typename Loss>
WholeLogits whole_logits(const Loss& loss, const LossOperands<Buffer>& operands,
                         const Invocation& invocation) {
  const int64_t rows = operands.hidden.shape.rows();
  const int64_t columns = operands.weight.shape.rows();
  const auto matrix = [&](int64_t number) {
    const auto offset = static_cast<size_t>(number * rows * columns);
    return scratch_buffer(scratch<T>(invocation).subspan(offset), rows, columns);
  };
  const Buffer logits = matrix(0);
  const int64_t plain = loss.gain ? 2 : 1;
  return {logits, loss.gain ? matrix(1) : logits,
          matrices_of(loss) > plain ? matrix(plain) : logits};
}

template <typename Loss>
int64_t logits_elements(const Loss&, const program::OperationView& view) {
  return view[Loss::kHidden].shape.rows() * view[Loss::kWeight].shape.rows();
}

// Computes losses and loss from logits = scale hidden weight^T, with a bias, a gain and a cap where
// there are any.
template <typename T, typename Loss>
void plain_loss(const Loss& loss, const LossOperands<Buffer>& operands, const WholeLogits& whole,
                const Invocation& invocation) {
  const Buffer& logits = whole.logits;
  const Buffer& product = whole.before_gain;
  const Buffer factors[]{operands.hidden, operands.weight};
  run_step<T>(program::Matmul{.transpose_b = true, .alpha = loss.scale}, factors, {&product, 1});
  invocation.note_piece(product.shape.rows());
  if (operands.bias != nullptr) {
    const Buffer terms[]{product, *operands.bias};
    run_step<T>(program::AddBias{}, terms, {&product, 1});
  }
  if (operands.gain != nullptr) {
    const Buffer scaled[]{product, *operands.gain};
    run_step<T>(program::ScaleColumns{}, scaled, {&logits, 1});
  }
  if (loss.softcap > 0) run_step<T>(program::Softcap{loss.softcap}, {&logits, 1}, {&logits, 1});
  const Buffer inputs[]{logits, operands.targets, operands.inverse_tokens};
  const Buffer outputs[]{operands.losses, operands.loss};
  run_step<T>(program::CrossEntropy{loss.smoothing}, inputs, outputs);
}

// The weight of each token in the loss: one number for all, or one per token.
template <typename T>
class TokenFactors {
 public:
  explicit TokenFactors(const Buffer& inverse_tokens) : factors_(inverse_tokens) {}
  T operator[](int64_t token) const { return factors_[factors_.columns() > 1 ? token : 0]; }

 private:
  Floats<T> factors_;
};

template <typename T>
void run(const program::CrossEntropy& cross, const Invocation& invocation) {
  const Floats<T> logits(invocation[program::CrossEntropy::kLogits]);
  const Integers targets(invocation[program::CrossEntropy::kTargets]);
  const Floats<T> losses(invocation[program::CrossEntropy::kLosses]);
  const TokenFactors<T> factors(invocation[program::CrossEntropy::kInverseTokens]);
  note_rows(invocation, program::CrossEntropy::kTargets);
  T sum = 0;
  for (int64_t t = 0; t < logits.rows(); ++t) {
    T loss = 0;
    if (targets[t] >= 0) {
      const LogSum<T> total = log_sum_exp(logits, t);
      const int64_t target = checked_target(logits, targets[t]);
      const T logit = smoothed_logit(logits, t, target, static_cast<T>(cross.smoothing));
      loss = total.log_rest - (logit - total.largest);
    }
    losses.set(t, loss);
    sum += loss * factors[t];
  }
  Floats<T>(invocation[program::CrossEntropy::kLoss]).set(0, sum);
}

template <typename T>
void run(const program::CrossEntropyGrad& grad, const Invocation& invocation) {
  const Floats<T> logits(invocation[program::CrossEntropyGrad::kLogits]);
  const Integers targets(invocation[program::CrossEntropyGrad::kTargets]);
  const TokenFactors<T> factors(invocation[program::CrossEntropyGrad::kInverseTokens]);
  const Floats<T> dlogits(invocation[program::CrossEntropyGrad::kDLogits]);
  const auto smoothing = static_cast<T>(grad.smoothing);
  const T share_of_all = smoothing / static_cast<T>(logits.columns());
  note_rows(invocation, program::CrossEntropyGrad::kTargets);
  for (int64_t t = 0; t < logits.rows(); ++t) {
    if (targets[t] < 0) {
      for (int64_t j = 0; j < logits.columns(); ++j) dlogits.set(t, j, T{0});
      continue;
    }
    const LogSum<T> total = log_sum_exp(logits, t);
    const int64_t target = checked_target(logits, targets[t]);
    for (int64_t j = 0; j < logits.columns(); ++j) {
      const T softmax = std::exp(logits.at(t, j) - total.largest - total.log_rest);
      const T wanted = share_of_all + (j == target ? T{1} - smoothing : T{0});
      dlogits.set(t, j, (softmax - wanted) * factors[t]);
    }
  }
}

template <typename T>
void run(const program::LinearCrossEntropy& loss, const Invocation& invocation) {
  const LossOperands<Buffer> operands = loss_operands(loss, invocation);
  plain_loss<T>(loss, operands, whole_logits<T>(loss, operands, invocation), invocation);
}

template <typename T>
void run(const program::LinearCrossEntropyTrain& train, const Invocation& invocation) {
  const LossOperands<Buffer> operands = loss_operands(train, invocation);
  const WholeLogits whole = whole_logits<T>(train, operands, invocation);
  plain_loss<T>(train, operands, whole, invocation);
  const Buffer& logits = whole.logits;
  const Buffer& dlogits = whole.gradients;
  const Buffer loss_inputs[]{logits, operands.targets, operands.inverse_tokens};
  run_step<T>(program::CrossEntropyGrad{train.smoothing}, loss_inputs, {&dlogits, 1});
  if (train.softcap > 0) {
    const Buffer cap_inputs[]{dlogits, logits};
    run_step<T>(program::SoftcapGrad{train.softcap}, cap_inputs, {&dlogits, 1});
  }
  if (operands.dgain != nullptr) {
    const Buffer products[]{dlogits, whole.before_gain};
    run_step<T>(program::ColumnGainGrad{}, products, {operands.dgain, 1});
  }
  if (operands.gain != nullptr) {
    const Buffer scaled[]{dlogits, *operands.gain};
    run_step<T>(program::ScaleColumns{}, scaled, {&dlogits, 1});
  }
  const Buffer hidden_factors[]{dlogits, operands.weight};
  run_step<T>(program::Matmul{.alpha = train.scale}, hidden_factors, {operands.dhidden, 1});
  if (operands.dbias != nullptr)
    run_step<T>(program::SumRows{}, {&dlogits, 1}, {operands.dbias, 1});
  if (operands.dweight == nullptr) return;
  const Buffer weight_factors[]{dlogits, operands.hidden};
  const program::Matmul matmul{
      .transpose_a = true, .alpha = train.scale, .accumulate = train.accumulate};
  const std::span<const Buffer> dweight(operands.dweight, 1);
  if (train.accumulate)
    run_step<T>(matmul, weight_factors, {}, dweight);
  else
    run_step<T>(matmul, weight_factors, dweight);
}

int64_t scratch_elements(const program::LinearCrossEntropy& loss,
                         const program::OperationView& view) {
  return matrices_of(loss) * logits_elements(loss, view);
}

int64_t scratch_elements(const program::LinearCrossEntropyTrain& train,
                         const program::OperationView& view) {
  return matrices_of(train) * logits_elements(train, view);
}

}  // namespace

SNUG_REFERENCE_KIND(CrossEntropy);
SNUG_REFERENCE_KIND(CrossEntropyGrad);
SNUG_REFERENCE_KIND(LinearCrossEntropy, .scratch_elements = scratch_elements);
SNUG_REFERENCE_KIND(LinearCrossEntropyTrain, .scratch_elements = scratch_elements);

}  // namespace snug::backends::reference
