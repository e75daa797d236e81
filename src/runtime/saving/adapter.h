// Adapters: initial values, and reading and writing of folders. The adapter's tensors are those of
// role adapter in the job's programs; the job's method defines them and what a folder says about
// them (methods/method.h). As with weights, the f32 master is what is read and saved where there is
// one: run `prepare` after initialising or loading.
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

// Performs the program `load_adapter` of a job with a new adapter, and runs `initialise`, which
// reads the model's weights, where the job has it.
void initialise_adapter(Executor& executor);
// Runs `initialise`, where the job has it.
void initialise(Executor& executor);

// The method's options for a job that continues training its recipe's adapter. The adapter's folder
// may also hold tables of the model (unchanged_tables.h), which this reads; throws UserError where
// their values are not the model's.
methods::MethodOptions to_train_on(const plan::PlannedTraining& planned);

// Throws UserError when a folder's tensors are not those of the job, or when its adapter computes
// something else than `options`, with which the job was planned: for LoRA, with another scale.
// Reads no values, so it can be called before the base model is loaded.
void check_adapter(const std::filesystem::path& folder, const methods::MethodOptions& options,
                   const plan::Job& job);

// Performs the program `load_adapter` of a job that reads its adapter from a PEFT folder, after
// check_adapter. Returns the digest of what all ranks have read (read_tensors.h).
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

// The model that an adapter belongs to.
struct AdaptedModel {
  std::filesystem::path folder{};  // empty: none, of a built-in shape
  std::string text_module{};       // as in ModelConfig
};

// Writes `folder` as a PEFT folder, atomically and by all ranks if there are several, replacing an
// existing one; the companion files (tokenizer, ...) of the base's folder are copied if it has one.
// The adapter of a text model within another one has the names of the whole, and its config targets
// that part alone. Tensors are saved as fp32 from the master where there is one, else in their own
// type; both are exact. The files are read back and compared before the folder appears. Throws
// UserError when the disk is full, or a value is not finite.
void save_adapter(const std::filesystem::path& folder, const formats::AdapterConfig& config,
                  const AdaptedModel& base, Executor& executor,
                  const formats::TrainedChat& chat = {});

// Does the work of save_adapter in an existing folder, without a transaction of its own; returns
// the checksums of the tensors as they were written.
formats::TensorChecksums write_adapter_files(const std::filesystem::path& folder,
                                             const formats::AdapterConfig& config,
                                             const std::filesystem::path& base_folder,
                                             Executor& executor,
                                             const formats::TrainedChat& chat = {});

}  // namespace snug::runtime
