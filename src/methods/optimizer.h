// What everything that plans, shards, offloads, saves or runs a job needs to know about an
// optimizer. Every optimizer is a row of one table. To add an optimizer, add a file with its row to
// this folder, a word to formats/recipe/choices.h, its keys to formats/recipe/optimizer_keys.cpp,
// and its operations (program/kinds/, backends/).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/recipe/choices.h"
#include "methods/loss_scale.h"
#include "program/ir/builder.h"
#include "program/ir/program.h"
#include "program/kinds/optimizer/optimizer_state.h"

namespace snug::methods {

using OptimizerKind = formats::Optimizer;

// The options that only Muon reads (program/kinds/optimizer/muon.h).
struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> coefficients{3.4445, -4.775, 2.0315};
  int64_t steps = 5;
  double epsilon = 1e-7;
  formats::AdjustLearningRate adjust_learning_rate = formats::AdjustLearningRate::original;
  bool bf16 = false;  // multiplies in bf16, as torch does, where the machine supports it
};

// The options of an update, the same for every trainable tensor. Each optimizer reads only its own.
struct UpdateOptions {
  OptimizerKind optimizer = OptimizerKind::adamw;
  program::DType gradient = program::DType::f32;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay_rate = -0.8;
  double clip_threshold = 1.0;
  double weight_decay = 0.0;  // not applied to norms and biases, as in transformers' Trainer
  double max_grad_norm = 1.0;
  MuonOptions muon{};
  // Of LoRA+ (Hayou et al. 2024), as shares of the learning rate; equal rates unless it is used.
  double lora_b_rate = 1.0;
  double lora_embedding_rate = 1.0;
  // The share that an exponential average of what trains keeps of itself in a step; 0: there is
  // no average.
  double ema_decay = 0;
  int64_t seed = 0;
  std::optional<LossScaleOptions> loss_scale{};  // of gradients in fp16
};

// A trainable tensor in the program that updates it.
struct SteppedTensor {
  const program::Tensor& trainable;
  int32_t site = 0;  // identifies its random draws
  program::TensorId gradient = program::kNone;
  program::TensorId factor = program::kNone;         // of the gradient, f32
  program::TensorId learning_rate = program::kNone;  // f32
  program::TensorId step = program::kNone;           // i32, from 1 on; kNone: steps are not counted
  // The tensor itself, followed by the optimizer's state for it.
  std::vector<program::TensorId> updates{};
};

struct Optimizer {
  OptimizerKind kind;
  // The state that the optimizer keeps for a tensor, in the order of its operations' operands.
  std::vector<program::OptimizerState> (*states)(const program::Tensor& trainable);
  // Adds the operations that step a tensor. Those that change it are of Category::optimizer.
  void (*emit)(program::Builder& builder, const SteppedTensor& tensor,
               const UpdateOptions& options);
  // Optimizers that keep less state, suggested when a job does not fit, the smallest change first.
  std::span<const OptimizerKind> leaner = {};
  bool counts_steps = true;  // its operations read the step number
  bool needs_bf16 = false;   // it only works with bf16 weights
  // By default gradients have the element type of the products.
  bool narrow_gradients = false;
  // A rank can update only the part of a tensor that it holds.
  bool steps_parts = true;
  // The CPU can run the update, for state in host memory, with the same bits as a GPU.
  bool steps_on_host = true;
};

const Optimizer& optimizer_of(OptimizerKind kind);
// Whether the CPU can run the update, averages included, as Optimizer::steps_on_host says.
bool steps_on_host(OptimizerKind kind, double ema_decay);

// The state that an update keeps for each trainable tensor: the optimizer's, and last the average.
std::vector<std::vector<program::OptimizerState>> states_of(
    std::span<const program::Tensor> trainables, const UpdateOptions& options);
// The average of a trainable tensor, f32.
program::OptimizerState average_of(const program::Tensor& trainable);

// Helpers for the rows: a state tensor with one element for each element of a tensor, and the f32
// master of a tensor.
program::OptimizerState moment_of(const program::Tensor& trainable, std::string name,
                                  program::DType dtype);
program::OptimizerState master_of(const program::Tensor& trainable);
// The weight decay of a tensor; 0 for biases and the weights of norms.
float weight_decay_of(const program::Tensor& trainable, const UpdateOptions& options);

// The rows of the table, each in a file of its own.
extern const Optimizer kAdamW;
extern const Optimizer kAdamWBf16;
extern const Optimizer kAdamW8bit;
extern const Optimizer kLion;
extern const Optimizer kAdafactor;
extern const Optimizer kMuon;

}  // namespace snug::methods
