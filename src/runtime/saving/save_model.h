// A fully tuned model as a Hugging Face folder that transformers loads: config.json, the weights in
// compute type, and the companion files of the base.
#pragma once

#include <filesystem>
#include <string>

#include "formats/folder/checksums.h"
#include "formats/folder/trained_chat.h"
#include "models/config/config.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

// Writes `folder` in one step, by all ranks where there are several, replacing one that exists.
// config.json is the source's with the element type updated, or written from the config for a
// preset. `chat` is what the run adds to the companion files. Read back and compared before the
// folder appears. Throws UserError when the disk is full, or a weight is not finite.
void save_model(const std::filesystem::path& folder, const models::ModelSource& source,
                Executor& executor, const formats::TrainedChat& chat = {});

// Does the work of save_model in an existing folder, without a transaction of its own; returns the
// checksums of the tensors as they were written.
formats::TensorChecksums write_model_files(const std::filesystem::path& folder,
                                           const models::ModelSource& source, Executor& executor,
                                           const formats::TrainedChat& chat = {});

// config.json and the companion files of a model that is saved in this type.
void write_model_config(const std::filesystem::path& folder, const models::ModelSource& source,
                        program::DType dtype, const formats::TrainedChat& chat = {});
// The type in which a job's result is saved.
program::DType saved_type(const Executor& executor);

// config.json's text for a model of this shape, as transformers 4 reads it too.
std::string config_json(const models::ModelConfig& config, program::DType dtype);

}  // namespace snug::runtime
