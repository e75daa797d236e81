#include <algorithm>
#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

// log(sum(exp(row))) as its largest element and the log of the rest.
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

template <typename T>
int64_t checked_target(const Floats<T>& logits, int64_t target) {
  SNUG_CHECK(target < logits.columns(), "target {} of {}", target, logits.columns());
  return target;
}

// An operation of the expansion, as it would stand in a program.
template <typename T, typename Struct>
void run_step(const Struct& attributes, std::span<const Buffer> reads,
              std::span<const Buffer> writes, std::span<const Buffer> updates = {}) {
  Invocation invocation;
  invocation.reads = reads;
  invocation.writes = writes;
  invocation.updates = updates;
  run<T>(attributes, invocation);
}

template <typename T>
Buffer whole_logits(const Invocation& invocation) {
  return scratch_buffer(scratch<T>(invocation), invocation.reads[0].shape.rows(),
                        invocation.reads[1].shape.rows());
}

int64_t logits_elements(const program::OperationView& view) {
  return view.read(0).shape.rows() * view.read(1).shape.rows();
}

// losses and loss from logits = hidden weight^T.
template <typename T>
void plain_loss(const Invocation& invocation, const Buffer& logits) {
  run_step<T>(program::Matmul{.transpose_b = true}, invocation.reads.first(2), {&logits, 1});
  const Buffer reads[]{logits, invocation.reads[2], invocation.reads[3]};
  run_step<T>(program::CrossEntropy{}, reads, invocation.writes.first(2));
}

}  // namespace

template <typename T>
void run(const program::CrossEntropy&, const Invocation& invocation) {
  const Floats<T> logits(invocation.reads[0]);
  const Integers targets(invocation.reads[1]);
  const Floats<T> losses(invocation.writes[0]);
  T sum = 0;
  for (int64_t t = 0; t < logits.rows(); ++t) {
    T loss = 0;
    if (targets[t] >= 0) {
      const LogSum<T> total = log_sum_exp(logits, t);
      const int64_t target = checked_target(logits, targets[t]);
      loss = total.log_rest - (logits.at(t, target) - total.largest);
    }
    losses.set(t, loss);
    sum += loss;
  }
  Floats<T>(invocation.writes[1]).set(0, sum * Floats<T>(invocation.reads[2])[0]);
}

template <typename T>
void run(const program::CrossEntropyGrad&, const Invocation& invocation) {
  const Floats<T> logits(invocation.reads[0]);
  const Integers targets(invocation.reads[1]);
  const T inverse_tokens = Floats<T>(invocation.reads[2])[0];
  const Floats<T> dlogits(invocation.writes[0]);
  for (int64_t t = 0; t < logits.rows(); ++t) {
    if (targets[t] < 0) {
      for (int64_t j = 0; j < logits.columns(); ++j) dlogits.set(t, j, T{0});
      continue;
    }
    const LogSum<T> total = log_sum_exp(logits, t);
    const int64_t target = checked_target(logits, targets[t]);
    for (int64_t j = 0; j < logits.columns(); ++j) {
      const T softmax = std::exp(logits.at(t, j) - total.largest - total.log_rest);
      dlogits.set(t, j, (j == target ? softmax - T{1} : softmax) * inverse_tokens);
    }
  }
}

template <typename T>
void run(const program::LinearCrossEntropy&, const Invocation& invocation) {
  plain_loss<T>(invocation, whole_logits<T>(invocation));
}

template <typename T>
void run(const program::LinearCrossEntropyTrain& train, const Invocation& invocation) {
  const Buffer logits = whole_logits<T>(invocation);
  plain_loss<T>(invocation, logits);
  const Buffer loss_reads[]{logits, invocation.reads[2], invocation.reads[3]};
  run_step<T>(program::CrossEntropyGrad{}, loss_reads, {&logits, 1});
  const Buffer hidden_reads[]{logits, invocation.reads[1]};
  run_step<T>(program::Matmul{}, hidden_reads, invocation.writes.subspan(2, 1));
  if (!train.weight_gradient) return;
  const Buffer weight_reads[]{logits, invocation.reads[0]};
  const program::Matmul matmul{.transpose_a = true, .accumulate = train.accumulate};
  run_step<T>(matmul, weight_reads, invocation.writes.subspan(3), invocation.updates);
}

int64_t scratch_elements(const program::LinearCrossEntropy&, const program::OperationView& view) {
  return logits_elements(view);
}

int64_t scratch_elements(const program::LinearCrossEntropyTrain&,
                         const program::OperationView& view) {
  return logits_elements(view);
}

SNUG_INSTANTIATE(CrossEntropy);
SNUG_INSTANTIATE(CrossEntropyGrad);
SNUG_INSTANTIATE(LinearCrossEntropy);
SNUG_INSTANTIATE(LinearCrossEntropyTrain);

}  // namespace snug::backends::reference
