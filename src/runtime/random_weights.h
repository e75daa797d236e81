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
// first. The backend makes the values where they lie (backends/random_values.h); they depend on
// seed, tensor name and position only, the same bits on every backend and number of threads.
void random_weights(const models::ModelConfig& config, int64_t seed, Executor& executor);

// A tensor (f32 or bf16, contiguous) and the name that its values come from.
struct TensorName {
  const backends::Buffer& buffer;
  std::string_view name;
};
// normal(0, deviation) or uniform(-bound, bound) values; one value.
void fill_normal(const TensorName& tensor, int64_t seed, float deviation, Executor& executor);
void fill_uniform(const TensorName& tensor, int64_t seed, float bound, Executor& executor);
void fill_constant(const backends::Buffer& buffer, float value, Executor& executor);

}  // namespace snug::runtime
