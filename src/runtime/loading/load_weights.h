// Loads a model's weights from a Hugging Face folder into the executor's arenas.
#pragma once

#include <cstdint>
#include <filesystem>

#include "models/config/config.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

struct LoadReport {
  int64_t bytes_read = 0;  // the bytes that this rank has read
  // The bytes among them that lie outside this rank's ranges, which other ranks read too
  // (ReadReport::bytes_around).
  int64_t bytes_around = 0;
  double seconds = 0;
  uint64_t digest = 0;  // a digest of all values that were read, to tell models apart
};

// Performs the program `load` of a job that reads its weights: from FOLDER/*.safetensors to where
// the program says. Where a weight has an f32 master (full training), the file is read into the
// master, and the program `prepare` must run before the weight is used. Weights that are quantised
// while loading are rounded as runtime/loading/stored_weight.h says. Throws UserError: for missing
// or surplus tensors, wrong shapes and unsupported element types before any data is read; for
// infinities and NaN while reading.
LoadReport load_weights(const std::filesystem::path& folder, const models::ModelConfig& config,
                        Executor& executor);

}  // namespace snug::runtime
