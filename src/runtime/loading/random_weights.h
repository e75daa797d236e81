// Initial values of weights, for training from scratch (init=random) and for measuring presets
// without files.
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
// in Hugging Face: matrices normal(0, initializer_range), norms 1, biases 0. Weights stored as NF4
// are rounded to the compute type first. The backend generates the values in place
// (backends/formulas/random_values.h); they depend only on seed, tensor name and position, and have
// the same bits on every backend and with any number of threads. Run `prepare` afterwards.
void random_weights(const models::ModelConfig& config, Executor& executor);

// The random key of a tensor, which depends on its name and the seed.
base::PhiloxKey tensor_key(std::string_view name, int64_t seed);

// Generates a weight stored as NF4 some blocks at a time and quantises them, through the staging
// memory of the program, from values in the type that quantised_from gives for files. For a part of
// a double quantised weight the scales are left for store_scales, once all ranks have gathered
// them. Returns the bytes that were written.
int64_t fill_stored(const backends::RandomValues& values, const StoredWeight& weight,
                    int64_t elements, program::ProgramName program, Executor& executor);

// A tensor (f32 or bf16, contiguous) and the name that determines its values.
struct TensorName {
  const backends::Buffer& buffer;
  std::string_view name;
};
// Fill a tensor with normal(0, deviation) values, with uniform(-bound, bound) values, or with one
// value.
void fill_normal(const TensorName& tensor, int64_t seed, float deviation, Executor& executor);
void fill_uniform(const TensorName& tensor, int64_t seed, float bound, Executor& executor);
void fill_constant(const backends::Buffer& buffer, float value, Executor& executor);

}  // namespace snug::runtime
