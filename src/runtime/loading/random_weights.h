// Initial values for training from scratch (init=random) and for measuring presets without files.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/formulas/random_values.h"
#include "base/random.h"
#include "models/config/config.h"
#include "runtime/execution/executor.h"
#include "runtime/loading/stored_weight.h"

namespace snug::runtime {

// Performs the program `load` of a job that was planned with init_seed. Weights are initialised as
// Hugging Face does it: matrices normal(0, initializer_range), norms 1, biases 0. What is stored as
// NF4 is rounded to the compute type first. The backend makes the values where they lie
// (backends/formulas/random_values.h); they depend on seed, tensor name and position only, the same
// bits on every backend and number of threads. Run `prepare` afterwards.
void random_weights(const models::ModelConfig& config, Executor& executor);

// What the values of a tensor of this name depend on.
base::PhiloxKey tensor_key(std::string_view name, int64_t seed);

// Makes a stored weight some blocks at a time and quantises it from there, through the staging
// memory of the program: what the weight would be in the compute type, as quantised_from says of
// files. The scales of a part of a double quantised weight are left for store_scales, once all
// ranks have gathered them. Gives the bytes that were put in place.
int64_t fill_stored(const backends::RandomValues& values, const StoredWeight& weight,
                    int64_t elements, program::ProgramName program, Executor& executor);

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
