// Checkpoints: OUTPUT_DIR/checkpoint-N, where N is the number of steps done.
//
//   adapter_config.json, adapter_model.safetensors   lora; or
//   config.json, model*.safetensors                  full: a model folder that loads anywhere, with
//                                                    frozen weights
//   the base model's companion files
//   optimizer*.safetensors   master.X, moment1.X, moment2.X of every trainable X, exact bits; not
//   in
//                            a checkpoint of the model alone
//   checksums.json           of every byte of the files above (formats/folder/checksums.h)
//   trainer_state.json       TrainerState, with the sizes of the other files and the checksum of
//                            checksums.json
//
// A checkpoint is written under a temporary name, synced and renamed, so it is there whole or not
// at all. The model or adapter, which users may use elsewhere, is read back and compared before
// that. Every byte is verified before a run continues from a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "formats/adapter/adapter_config.h"
#include "formats/folder/trained_chat.h"
#include "models/config/config.h"
#include "runtime/execution/executor.h"
#include "runtime/saving/trainer_state.h"

namespace snug::runtime {

struct CheckpointOptions {
  std::filesystem::path output_dir;
  models::ModelSource model;                      // the base model
  std::optional<formats::AdapterConfig> adapter;  // absent: full training
  formats::TrainedChat chat;                      // what the run adds to the companion files
  int64_t save_total_limit = 0;                   // the number of checkpoints to keep; 0: all
};

// Writes OUTPUT_DIR/checkpoint-STEP, of the model alone where state.only_model says so, and then
// removes the oldest complete checkpoints beyond the limit, except those that state.history names.
// Returns the new folder. Throws UserError when the
// disk is full or a trained weight is not finite; older checkpoints then stay as they were.
std::filesystem::path save_checkpoint(const CheckpointOptions& options, const TrainerState& state,
                                      Executor& executor);

// Reads trainer_state.json and checks that every file it lists exists with the listed size. Throws
// a UserError that names the file otherwise.
TrainerState read_checkpoint_state(const std::filesystem::path& folder);

// Throws UserError, with what to do instead, where the checkpoint is of the model alone.
void require_optimizer_state(const std::filesystem::path& folder);

// Makes `target` a copy of the model or adapter in a checkpoint, replacing what is there, after
// every byte of it was verified. The first rank does it. Throws base::DamagedFile when a file is
// not as it was written.
void copy_result(const std::filesystem::path& folder, const std::filesystem::path& target,
                 Executor& executor);

// Restores masters, moments and the trainable tensors, and in full training also the frozen ones
// (and the rotary frequencies). Once `prepare` has run, as it must after loading too, every bit is
// as saved. The base weights under an adapter are not part of a checkpoint: call load_weights
// first. Reads every byte of the checkpoint once. Throws UserError, before anything is restored,
// when files are missing or another recipe made the checkpoint; throws base::DamagedFile when a
// file is not as it was written, after which the tensors are undefined until another checkpoint is
// restored.
TrainerState restore_checkpoint(const std::filesystem::path& folder,
                                const models::ModelConfig& config, Executor& executor);

}  // namespace snug::runtime
