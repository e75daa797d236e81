// The model that a job reads, and its weights: from a Hugging Face folder into the executor's
// arenas.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

// The model that a recipe names, with the tables that an adapter which is applied to it brings.
// Throws UserError for one without weights, unless init=random, and for files that do not hold the
// model that their config.json describes, whether in 16 or 32 bits or as NF4: a weight that is
// missing, surplus, or of another shape. Looks at headers alone, so that a mistake shows before
// memory is taken for it.
models::ModelSource open_model(const formats::Recipe& recipe);
// The same to be trained, whatever adapter training goes on with.
models::ModelSource open_model_to_train(const formats::Recipe& recipe);

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

// Gives the base model's weights their values: read from its folder, or drawn, of which there is
// no report (random_weights.h).
std::optional<LoadReport> set_weights(const models::ModelSource& model, formats::Init init,
                                      Executor& executor);

}  // namespace snug::runtime
