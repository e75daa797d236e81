// The programs around the micro-batches: what makes a trainable tensor trainable.
//
//   prepare   weight = cast(master)                 after loading, where a master exists
//   update    norm = global_norm(gradients); factor = clip_factor(norm)
//             what the optimizer emits (optimizer.h), a tensor
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "methods/optimizer.h"
#include "program/ir/program.h"

namespace snug::methods {

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
