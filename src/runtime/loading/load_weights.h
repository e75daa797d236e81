// A model's weights, from a Hugging Face folder into the executor's arenas.
#pragma once

#include <cstdint>
#include <filesystem>

#include "models/config/config.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

struct LoadReport {
  int64_t bytes_read = 0;  // by this rank
  // The bytes among them next to its ranges, which others read too (ReadReport::bytes_around).
  int64_t bytes_around = 0;
  double seconds = 0;
  uint64_t digest = 0;  // of every number that was read: another for every other model
};

// Performs the program `load` of a job whose weights are read: from FOLDER/*.safetensors, to where
// the program says. Where a weight has an f32 master (full training) the file goes to the master,
// and the program `prepare` must run before the weight is read. What is quantised on the way is
// rounded as runtime/loading/stored_weight.h says. Throws UserError, before the first byte of data
// is read, for missing or surplus tensors, wrong shapes and unsupported element types; while
// reading, for infinities and NaN.
LoadReport load_weights(const std::filesystem::path& folder, const models::ModelConfig& config,
                        Executor& executor);

}  // namespace snug::runtime
