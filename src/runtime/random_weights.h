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
// load_weights: run `prepare` afterwards. A value depends on seed, tensor name and position only,
// so every number of threads gives the same bits. Threads 0: one a core.
void random_weights(const models::ModelConfig& config, int64_t seed, int threads,
                    Executor& executor);

// One tensor (f32 or bf16, contiguous) of normal(0, deviation) or uniform(-bound, bound) values.
void fill_normal(const backends::Buffer& buffer, std::string_view name, int64_t seed,
                 float deviation, int threads);
void fill_uniform(const backends::Buffer& buffer, std::string_view name, int64_t seed, float bound);

}  // namespace snug::runtime
