// The programs around the micro-batches: what makes a trainable tensor trainable.
//
//   prepare   weight = cast(master)                 after loading, where a master exists
//   update    norm = global_norm(gradients); factor = clip_factor(norm)
//             adamw or adamw_8bit(gradient, factor, ...) a tensor
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/choices.h"
#include "program/program.h"

namespace snug::methods {

using OptimizerKind = formats::Optimizer;

// adamw_8bit keeps tensors of fewer elements as adamw does, as bitsandbytes has it.
inline constexpr int64_t kMin8bitElements = 4096;

struct UpdateOptions {
  OptimizerKind optimizer = OptimizerKind::adamw;
  program::DType gradient = program::DType::f32;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  // not on norms and biases, as Hugging Face's Trainer has it
  double max_grad_norm = 1.0;
  int64_t seed = 0;
};

// Whether there is an fp32 master next to this tensor: with fp32 moments, where the tensor itself
// is not f32.
bool has_master(const program::Tensor& trainable, OptimizerKind optimizer);

// Trainable tensors of a forward program: adapters where there are any, else all weights but those
// of these names.
std::vector<program::TensorId> trainable_tensors(const program::Program& forward,
                                                 std::span<const std::string> frozen = {});
// Where each of them stands among all that could be trained: the site of its random draws, which
// are the same whatever else is frozen.
std::vector<int32_t> random_sites(const program::Program& forward,
                                  std::span<const program::TensorId> trainable);

// `sites`: one for each tensor.
program::Program update(std::span<const program::Tensor> trainables, std::span<const int32_t> sites,
                        const UpdateOptions& options);
// No operations when nothing has a master.
program::Program prepare(std::span<const program::Tensor> trainables, const UpdateOptions& options);

}  // namespace snug::methods
