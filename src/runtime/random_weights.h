// Initial values for training from scratch (init=random) and for measuring presets without files.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/backend.h"
#include "models/config.h"
#include "runtime/executor.h"

namespace snug::runtime {

// Fills every weight as Hugging Face initialises it: matrices normal(0, initializer_range), norms
// 1, biases 0; and writes the rotary frequencies. Goes to the f32 master where there is one, as in
// load_weights: run `prepare` afterwards. What is stored as NF4 is rounded to the compute type
// first. A value depends on seed, tensor name and position only, so every number of threads gives
// the same bits. Threads 0: one a core.
void random_weights(const models::ModelConfig& config, int64_t seed, int threads,
                    Executor& executor);

// A tensor (f32 or bf16, contiguous) and the name that its values come from.
struct TensorName {
  const backends::Buffer& buffer;
  std::string_view name;
};
// normal(0, deviation) or uniform(-bound, bound) values.
void fill_normal(const TensorName& tensor, int64_t seed, float deviation, int threads,
                 Executor& executor);
void fill_uniform(const TensorName& tensor, int64_t seed, float bound, Executor& executor);

}  // namespace snug::runtime
