// Checkpoints: OUTPUT_DIR/checkpoint-N, where N is the number of steps done.
//
//   adapter_config.json, adapter_model.safetensors   lora; or
//   config.json, model*.safetensors                  full: a model folder that loads anywhere, with
//                                                    the weights that are frozen too
//   the base model's companion files
//   optimizer*.safetensors   master.X, moment1.X, moment2.X of every trainable X, exact bits
//   checksums.json           of every byte of the files above (formats/folder/checksums.h)
//   trainer_state.json       TrainerState, with the other files' sizes and the checksum of the
//   former
//
// A checkpoint is written next to it, synced and renamed: it is there whole or not at all. What
// users may carry away, the model or adapter, is read back and compared before. Every byte of it is
// verified before a run goes on from it.
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
  models::ModelSource model;                      // the base
  std::optional<formats::AdapterConfig> adapter;  // absent: full training
  formats::TrainedChat chat;                      // what the run adds to the companion files
  int64_t save_total_limit = 0;                   // 0: keep all
};

// Writes OUTPUT_DIR/checkpoint-STEP and then removes the oldest complete ones beyond the limit.
// Returns its folder. Throws UserError when the disk is full or a trained weight is not finite;
// older checkpoints stay as they were.
std::filesystem::path save_checkpoint(const CheckpointOptions& options, const TrainerState& state,
                                      Executor& executor);

// Reads trainer_state.json and checks that every file it lists is there and has its size. Throws
// UserError naming the file that is not.
TrainerState read_checkpoint_state(const std::filesystem::path& folder);

// Puts back masters, moments, and the trainable tensors, in full training also the frozen ones (and
// the rotary frequencies): every bit as saved once `prepare` has run, as after loading. With an
// adapter the base's weights are not part of it: call load_weights first. Reads every byte of the
// checkpoint once. Throws UserError, before anything is written, when files are missing or it was
// made by another recipe; base::DamagedFile when a file is not as it was written, and what is
// restored is undefined then until another checkpoint was.
TrainerState restore_checkpoint(const std::filesystem::path& folder,
                                const models::ModelConfig& config, Executor& executor);

}  // namespace snug::runtime
