// Saves a fully tuned model as a Hugging Face folder that transformers loads: config.json, the
// weights in the compute type, and the companion files of the base.
#pragma once

#include <filesystem>
#include <string>

#include "formats/folder/checksums.h"
#include "formats/folder/trained_chat.h"
#include "models/config/config.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

// Writes `folder` atomically, by all ranks if there are several, replacing an existing one.
// config.json is the source's with the element type updated; for a preset it is generated. A text
// model that lies within another one is written back into it: its tensors have the names of the
// source's files, whose other tensors are copied. `chat` is what the run adds to the companion
// files. The files are read back and compared before the
// folder appears. Throws UserError when the disk is full, or a weight is not finite.
void save_model(const std::filesystem::path& folder, const models::ModelSource& source,
                Executor& executor, const formats::TrainedChat& chat = {});

// Writes the same into an existing folder, without a transaction of its own, but of a text model
// within another one its own tensors alone; returns the checksums of the tensors as they were
// written.
formats::TensorChecksums write_model_files(const std::filesystem::path& folder,
                                           const models::ModelSource& source, Executor& executor,
                                           const formats::TrainedChat& chat = {});

// Writes config.json and the companion files of a model whose weights are saved in this type.
void write_model_config(const std::filesystem::path& folder, const models::ModelSource& source,
                        program::DType dtype, const formats::TrainedChat& chat = {});
// The type in which a job's result is saved.
program::DType saved_type(const Executor& executor);

// The text of config.json for a model of this shape, in a form that transformers 4 can read as
// well.
std::string config_json(const models::ModelConfig& config, program::DType dtype);

}  // namespace snug::runtime
