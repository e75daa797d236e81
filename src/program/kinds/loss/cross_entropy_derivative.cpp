#include "program/kinds/loss/cross_entropy_derivative.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "program/ir/tape.h"
#include "program/kinds/loss/segment_sums.h"

namespace snug::program {
namespace {

// The training form, and the tensors to which its gradients are written.
struct TrainingForm {
  LinearCrossEntropyTrain kind;
  std::vector<TensorId> gradients;  // dhidden, then those of weight, bias and gain that are needed
};

// `dhidden`: the tensor to which the gradient of hidden is written.
TrainingForm training_form(const LinearCrossEntropy& loss, const Operation& operation,
                           TensorId dhidden, Tape& tape) {
  TrainingForm train;
  train.kind.chunks = loss.chunks;
  train.kind.scale = loss.scale;
  train.kind.softcap = loss.softcap;
  train.kind.bias = loss.bias;
  train.kind.gain = loss.gain;
  train.kind.smoothing = loss.smoothing;
  train.gradients = {dhidden};
  const auto make = [&](const Operand<LinearCrossEntropy>& operand) {
    const TensorId input = id_of(operation, operand);
    if (!tape.wants(input)) return false;
    train.gradients.push_back(tape.contribute(input));
    return true;
  };
  train.kind.weight_gradient = make(LinearCrossEntropy::kWeight);
  train.kind.bias_gradient = loss.bias && make(LinearCrossEntropy::kBias);
  train.kind.gain_gradient = loss.gain && make(LinearCrossEntropy::kGain);
  return train;
}

// The gradient of hidden, or a tensor that nothing reads.
TensorId gradient_of_hidden(const Operation& operation, Tape& tape) {
  const TensorId hidden = id_of(operation, LinearCrossEntropy::kHidden);
  if (tape.wants(hidden)) return tape.contribute(hidden);
  const Tensor input = tape.program().tensor(hidden);  // copied, since the program's table grows
  return tape.temporary("dhidden", input.shape, input.dtype);
}

void emit_training_form(const TrainingForm& train, std::vector<TensorId> reads,
                        std::vector<TensorId> writes, Tape& tape) {
  writes.insert(writes.end(), train.gradients.begin(), train.gradients.end());
  tape.emit(train.kind, std::move(reads), std::move(writes));
}

void differentiate_later(const LinearCrossEntropy& loss, const Operation& operation, Tape& tape) {
  tape.emit(loss, operation.reads, operation.writes);
  tape.later([&tape, loss, operation] {
    const TensorId losses = id_of(operation, LinearCrossEntropy::kLosses);
    const TensorId dlosses = tape.gradient(losses);
    if (dlosses == kNone) return;
    // The weight of each token must be given by the gradient of `losses` only, not through `loss`.
    SNUG_CHECK_EQ(tape.gradient(id_of(operation, LinearCrossEntropy::kLoss)), kNone);
    std::vector<TensorId> reads = operation.reads;
    std::ranges::replace(reads, id_of(operation, LinearCrossEntropy::kInverseTokens), dlosses);
    std::vector<TensorId> again;
    for (const TensorId result : operation.writes) {
      const Tensor like = tape.program().tensor(result);  // copied, since the program's table grows
      again.push_back(tape.temporary("again", like.shape, like.dtype));
    }
    emit_training_form(training_form(loss, operation, gradient_of_hidden(operation, tape), tape),
                       std::move(reads), std::move(again), tape);
  });
}

}  // namespace

void differentiate_linear_loss(const LinearCrossEntropy& loss, const Operation& operation,
                               Tape& tape) {
  const TensorId hidden = id_of(operation, LinearCrossEntropy::kHidden);
  const TensorId losses = id_of(operation, LinearCrossEntropy::kLosses);
  const bool is_weighed = tape.is_read(losses);
  const auto trains_operand = [&](const Operand<LinearCrossEntropy>& operand) {
    return tape.wants(id_of(operation, operand));
  };
  const bool trains = trains_operand(LinearCrossEntropy::kWeight) ||
                      (loss.bias && trains_operand(LinearCrossEntropy::kBias)) ||
                      (loss.gain && trains_operand(LinearCrossEntropy::kGain));
  if (is_weighed && trains) {
    differentiate_later(loss, operation, tape);
    return;
  }
  const TensorId dhidden = is_weighed && tape.wants(hidden) ? weigh_rows_later(hidden, losses, tape)
                                                            : gradient_of_hidden(operation, tape);
  emit_training_form(training_form(loss, operation, dhidden, tape), operation.reads,
                     operation.writes, tape);
}

}  // namespace snug::program
