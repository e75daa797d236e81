// What an optimizer is to everything that plans, shards, offloads, saves or runs a job: a row of
// one table, which all of that reads. A new optimizer is a file in this folder with its row, a word
// in formats/recipe/choices.h, its keys in formats/recipe/optimizer_keys.cpp, and what its
// operations are (program/kinds/, backends/).
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

// Muon's own numbers (program/kinds/optimizer/muon.h).
struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> coefficients{3.4445, -4.775, 2.0315};
  int64_t steps = 5;
  double epsilon = 1e-7;
  formats::AdjustLearningRate adjust_learning_rate = formats::AdjustLearningRate::original;
  bool bf16 = false;  // its products are bf16, as torch's are, where the machine makes such
};

// The numbers of an update, the same for all that trains. An optimizer looks at those that are its
// own.
struct UpdateOptions {
  OptimizerKind optimizer = OptimizerKind::adamw;
  program::DType gradient = program::DType::f32;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay_rate = -0.8;
  double clip_threshold = 1.0;
  double weight_decay = 0.0;  // not on norms and biases, as Hugging Face's Trainer has it
  double max_grad_norm = 1.0;
  MuonOptions muon{};
  int64_t seed = 0;
  std::optional<LossScaleOptions> loss_scale{};  // of gradients in fp16
};

// A tensor that trains, in the program that steps it.
struct SteppedTensor {
  const program::Tensor& trainable;
  int32_t site = 0;  // of its random draws
  program::TensorId gradient = program::kNone;
  program::TensorId factor = program::kNone;         // of the gradient, f32
  program::TensorId learning_rate = program::kNone;  // f32
  program::TensorId step = program::kNone;  // i32, from 1 on; of optimizers that count steps
  // The tensor itself, then what the optimizer keeps of it.
  std::vector<program::TensorId> updates{};
};

struct Optimizer {
  OptimizerKind kind;
  // What it keeps of a tensor, in the order in which its operations name them.
  std::vector<program::OptimizerState> (*states)(const program::Tensor& trainable);
  // Adds the operations that step a tensor. Those that change it are of Category::optimizer.
  void (*emit)(program::Builder& builder, const SteppedTensor& tensor,
               const UpdateOptions& options);
  // Optimizers that keep less, for a job that does not fit; the mildest first.
  std::span<const OptimizerKind> leaner = {};
  bool counts_steps = true;       // its operations read the number of the step
  bool needs_bf16 = false;        // weights are bf16 and nothing else
  bool narrow_gradients = false;  // in the type of the products, where a recipe leaves it open
  bool steps_parts = true;        // a rank may step the part of a tensor that it holds
  bool steps_on_host = true;      // where state lies in host memory: with the bits of a card
};

const Optimizer& optimizer_of(OptimizerKind kind);

// What it keeps of each tensor that trains.
std::vector<std::vector<program::OptimizerState>> states_of(
    std::span<const program::Tensor> trainables, OptimizerKind kind);

// Rows use these: something that an optimizer keeps for each element of a tensor, and its f32
// master.
program::OptimizerState moment_of(const program::Tensor& trainable, std::string name,
                                  program::DType dtype);
program::OptimizerState master_of(const program::Tensor& trainable);
// The weight decay of a tensor that is neither a norm's weight nor a bias; 0 of those.
float weight_decay_of(const program::Tensor& trainable, const UpdateOptions& options);

// Rows, each in a file of its own.
extern const Optimizer kAdamW;
extern const Optimizer kAdamWBf16;
extern const Optimizer kAdamW8bit;
extern const Optimizer kLion;
extern const Optimizer kAdafactor;
extern const Optimizer kMuon;

}  // namespace snug::methods
