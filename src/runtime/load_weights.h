// A model's weights, from a Hugging Face folder into the executor's arenas.
#pragma once

#include <cstdint>
#include <filesystem>

#include "models/config.h"
#include "runtime/executor.h"

namespace snug::runtime {

struct LoadReport {
  int64_t bytes_read = 0;
  double seconds = 0;
  uint64_t digest = 0;  // of every number that was read: another for every other model
};

// Reads every weight of models::weights_of(config) from FOLDER/*.safetensors, and writes the rotary
// frequencies. Where a weight has an f32 master (full training) the file goes to the master, and
// the program `prepare` must run before the weight is read. What is quantised on the way is rounded
// as runtime/stored_weight.h says. Throws UserError, before the first byte
// of data is read, for missing or surplus tensors, wrong shapes and unsupported element types;
// while reading, for infinities and NaN.
LoadReport load_weights(const std::filesystem::path& folder, const models::ModelConfig& config,
                        Executor& executor);

// Writes the tensor that models::frequencies_name gives for the job (head_dim / 2). load_weights,
// random_weights and restore_checkpoint do it already.
void write_inverse_frequencies(const models::ModelConfig& config, Executor& executor);

}  // namespace snug::runtime
