// Adapters in the executor's arenas: initial values, and folders in and out. The adapter's tensors
// are those of role adapter in the job's programs; what they are, and what a folder says of them,
// is for the job's method to say (methods/method.h). As with weights, the f32 master is what is
// written and saved where there is one: run `prepare` after initialising or loading.
#pragma once

#include <cstdint>
#include <filesystem>

#include "formats/adapter/adapter_config.h"
#include "formats/folder/checksums.h"
#include "formats/folder/trained_chat.h"
#include "methods/method.h"
#include "plan/job/assembly.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

// Performs the program `load_adapter` of a job whose adapter is made, and runs `initialise` where
// the job has it, which reads the model's weights.
void initialise_adapter(Executor& executor);

// The options of a job that goes on with the adapter of its recipe, which may hold tables of the
// model besides (unchanged_tables.h). Throws UserError for others than the model's. Reads those
// tables.
methods::MethodOptions to_train_on(const plan::PlannedTraining& planned);

// Throws UserError when a folder's tensors are not those of the job, or it computes another thing
// than `options`, with which the job was planned: of LoRA, another scale. Reads no values, so it
// can come before the base model's.
void check_adapter(const std::filesystem::path& folder, const methods::MethodOptions& options,
                   const plan::Job& job);

// Performs `load_adapter` of a job whose adapter is read, from a PEFT folder, once it is checked.
// Gives the digest of what was read (read_tensors.h), by all ranks.
uint64_t load_adapter(const std::filesystem::path& folder, const methods::MethodOptions& options,
                      Executor& executor);

// What a folder says of the adapter that a job of this recipe trains on this model, as PEFT reads
// it.
formats::AdapterConfig adapter_config(const formats::Recipe& recipe,
                                      const models::ModelConfig& model, const plan::Job& job);

// adapter_config.json, and the companion files of `base_folder` unless it is empty, with what the
// run adds to them.
void write_adapter_config(const std::filesystem::path& folder, const formats::AdapterConfig& config,
                          const std::filesystem::path& base_folder,
                          const formats::TrainedChat& chat = {});

// Writes `folder` as a PEFT folder, in one step and by all ranks where there are several, replacing
// one that exists; the companion files (tokenizer, ...) of `base_folder` travel along unless it is
// empty. Tensors are saved as fp32 from the master where there is one, else in their own type:
// exact either way. The files are read back and compared before the folder appears. Throws
// UserError when the disk is full, or a value is not finite.
void save_adapter(const std::filesystem::path& folder, const formats::AdapterConfig& config,
                  const std::filesystem::path& base_folder, Executor& executor,
                  const formats::TrainedChat& chat = {});

// Does the work of save_adapter in an existing folder, without a transaction of its own; gives what
// the tensors were written with.
formats::TensorChecksums write_adapter_files(const std::filesystem::path& folder,
                                             const formats::AdapterConfig& config,
                                             const std::filesystem::path& base_folder,
                                             Executor& executor,
                                             const formats::TrainedChat& chat = {});

}  // namespace snug::runtime
