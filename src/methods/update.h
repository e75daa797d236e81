// The programs that run before and after the micro-batches, in which trainable tensors get their
// values.
//
//   prepare   weight = cast(master)                 after loading, where a master exists
//   update    norm = global_norm(gradients); factor = clip_factor(norm)
//             what the optimizer emits for each tensor (optimizer.h)
//             with ema_decay, for the values that are stepped, master or weight:
//               average += (1 - ema_decay) (value - average)
//   average   value = average                       after the last step, before `prepare`
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "methods/optimizer.h"
#include "program/ir/program.h"

namespace snug::methods {

// The trainable tensors of a forward program: those of adapters where there are any, otherwise all
// weights except the `frozen` ones.
std::vector<program::TensorId> trainable_tensors(const program::Program& forward,
                                                 std::span<const std::string> frozen = {});
// The position of each trainable tensor among all tensors that could train. It identifies the
// tensor's random draws, which therefore do not depend on what is frozen.
std::vector<int32_t> random_sites(const program::Program& forward,
                                  std::span<const program::TensorId> trainable);

// `sites`: one for each trainable tensor.
program::Program update(std::span<const program::Tensor> trainables, std::span<const int32_t> sites,
                        const UpdateOptions& options);
// With ema_decay: averages begin as the values that training begins with, to be run after `load`
// and before `restore`; and the values become the averages.
void begin_averages(std::span<const program::Tensor> trainables, const UpdateOptions& options,
                    program::Builder& initialise);
program::Program take_averages(std::span<const program::Tensor> trainables,
                               const UpdateOptions& options);

// Has no operations where no tensor has a master.
program::Program prepare(std::span<const program::Tensor> trainables, const UpdateOptions& options);

}  // namespace snug::methods
