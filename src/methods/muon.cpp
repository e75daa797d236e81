// Muon: each matrix of a layer, whether a weight or part of an adapter, has one fp32 moment, and
// its update is orthogonalised. Vectors, embeddings and the head are updated by AdamW. A stack of
// experts' matrices counts as one matrix per expert. Products are summed in another order on a GPU
// than on a CPU.
#include <algorithm>
#include <cmath>

#include "methods/optimizer.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/optimizer/muon.h"

namespace snug::methods {
namespace {

using formats::AdjustLearningRate;
using program::DType;
using program::OptimizerState;
using program::Tensor;

// Embeddings and the head belong to no layer, so they are excluded.
bool is_hidden_matrix(const Tensor& trainable) {
  return trainable.layer >= 0 && (trainable.shape.rank() == 2 || trainable.shape.rank() == 3);
}

std::vector<OptimizerState> muon_states(const Tensor& trainable) {
  if (!is_hidden_matrix(trainable)) return kAdamW.states(trainable);
  std::vector<OptimizerState> states{
      moment_of(trainable, program::first_moment_name(trainable.name), DType::f32)};
  if (trainable.dtype != DType::f32) states.push_back(master_of(trainable));
  return states;
}

// The factor by which the learning rate is multiplied for a matrix of this size.
double rate_scale(AdjustLearningRate by, double rows, double columns) {
  switch (by) {
    case AdjustLearningRate::original:
      return std::sqrt(std::max(1.0, rows / columns));
    case AdjustLearningRate::match_rms_adamw:
      return 0.2 * std::sqrt(std::max(rows, columns));
    case AdjustLearningRate::spectral_unclamped:
      break;
  }
  return std::sqrt(rows / columns);
}

void emit_muon(program::Builder& builder, const SteppedTensor& tensor,
               const UpdateOptions& options) {
  if (!is_hidden_matrix(tensor.trainable)) return kAdamW.emit(builder, tensor, options);
  const program::Shape& shape = tensor.trainable.shape;
  const MuonOptions& muon = options.muon;
  builder.emit(
      program::Muon{.momentum = static_cast<float>(muon.momentum),
                    .nesterov = muon.nesterov,
                    .c0 = static_cast<float>(muon.coefficients[0]),
                    .c1 = static_cast<float>(muon.coefficients[1]),
                    .c2 = static_cast<float>(muon.coefficients[2]),
                    .steps = static_cast<int32_t>(muon.steps),
                    .epsilon = static_cast<float>(muon.epsilon),
                    .weight_decay = weight_decay_of(tensor.trainable, options),
                    .rate_scale = static_cast<float>(rate_scale(
                        muon.adjust_learning_rate, static_cast<double>(shape[shape.rank() - 2]),
                        static_cast<double>(shape.columns()))),
                    .bf16 = muon.bf16,
                    .has_master = tensor.trainable.dtype != DType::f32},
      {tensor.gradient, tensor.factor, tensor.learning_rate}, {}, tensor.updates);
}

}  // namespace

const Optimizer kMuon{
    .kind = OptimizerKind::muon, .states = muon_states, .emit = emit_muon, .steps_on_host = false};

}  // namespace snug::methods
